//! Writes what the tokenizers of OpenAI's models know, as plain lists: every token, its length before it, the one that is
//! merged first before the others. `bpe-openai` has them as tables that are ready for use, and twenty times the size.
#![forbid(unsafe_code)]

use std::io;

fn main() -> io::Result<()> {
    #[cfg(feature = "tokenizer")]
    {
        lists::write("o200k_base", bpe_openai::o200k_base())?;
        lists::write("cl100k_base", bpe_openai::cl100k_base())?;
    }
    println!("cargo::rerun-if-changed=build.rs");
    Ok(())
}

#[cfg(feature = "tokenizer")]
mod lists {
    use std::path::PathBuf;
    use std::{env, fs, io};

    pub(super) fn write(name: &str, tokenizer: &bpe_openai::Tokenizer) -> io::Result<()> {
        let mut list = Vec::new();
        for rank in 0..u32::try_from(tokenizer.bpe.num_tokens()).map_err(io::Error::other)? {
            let token = tokenizer.bpe.token_bytes(rank);
            list.push(u8::try_from(token.len()).map_err(io::Error::other)?);
            list.extend_from_slice(token);
        }
        let folder = PathBuf::from(env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?);
        fs::write(folder.join(name), list)
    }
}

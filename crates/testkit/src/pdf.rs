//! PDFs made by hand: small ones that say something, and hostile ones.

use std::fmt::Write as _;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;

/// A file of these objects, numbered from 1; the first is the catalogue. `trailer` is what its trailer has beside.
pub fn file(objects: &[Vec<u8>], trailer: &str) -> Vec<u8> {
    let mut out = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n".to_vec();
    let mut places = Vec::new();
    for (index, object) in objects.iter().enumerate() {
        places.push(out.len());
        out.extend_from_slice(format!("{} 0 obj\n", index + 1).as_bytes());
        out.extend_from_slice(object);
        out.extend_from_slice(b"\nendobj\n");
    }
    let (start, size) = (out.len(), objects.len() + 1);
    let mut table = format!("xref\n0 {size}\n0000000000 65535 f \n");
    for place in places {
        let _ = writeln!(table, "{place:010} 00000 n ");
    }
    let _ = write!(table, "trailer\n<< /Size {size} /Root 1 0 R {trailer} >>\nstartxref\n{start}\n%%EOF\n");
    out.extend_from_slice(table.as_bytes());
    out
}

/// A stream with these entries in its dictionary.
pub fn stream(entries: &str, data: &[u8]) -> Vec<u8> {
    let mut out = format!("<< {entries} /Length {} >>\nstream\n", data.len()).into_bytes();
    out.extend_from_slice(data);
    out.extend_from_slice(b"\nendstream");
    out
}

/// The same, compressed.
pub fn compressed(entries: &str, data: &[u8]) -> Vec<u8> {
    stream(&format!("{entries} /Filter /FlateDecode"), &deflated(data))
}

pub fn deflated(data: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(data).unwrap_or_default();
    encoder.finish().unwrap_or_default()
}

/// Pages with these content streams, which are objects 4, 6 and so on; their font is Helvetica, `resources` what else there is.
/// More objects come after them.
pub fn pages(contents: &[Vec<u8>], resources: &str, more: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let kids = joined((0..contents.len()).map(|page| format!("{} 0 R", 3 + 2 * page)));
    let mut objects = vec![
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        format!("<< /Type /Pages /Kids [{kids}] /Count {} >>", contents.len()).into_bytes(),
    ];
    let font = "/F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>";
    for (index, content) in contents.iter().enumerate() {
        let page = format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {} 0 R /Resources << /Font << {font} >> {resources} >> >>",
            4 + 2 * index
        );
        objects.push(page.into_bytes());
        objects.push(content.clone());
    }
    objects.extend_from_slice(more);
    objects
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(" ")
}

/// What draws these lines.
pub fn lines(text: &str) -> Vec<u8> {
    let mut out = String::from("BT /F1 12 Tf 14 TL 72 770 Td\n");
    for line in text.lines() {
        let line = line.replace('\\', r"\\").replace('(', r"\(").replace(')', r"\)");
        let _ = writeln!(out, "({line}) Tj T*");
    }
    out.push_str("ET");
    out.into_bytes()
}

/// An ordinary file: a page for each text, compressed.
pub fn document(texts: &[&str]) -> Vec<u8> {
    let contents: Vec<Vec<u8>> = texts.iter().map(|text| compressed("", &lines(text))).collect();
    file(&pages(&contents, "", &[]), "")
}

/// Files that are no good, or up to no good, each with what it is.
pub fn hostile() -> Vec<(&'static str, Vec<u8>)> {
    let good = document(&["Quarterly figures"]);
    let encrypted = "/ID [<00112233445566778899aabbccddeeff> <00112233445566778899aabbccddeeff>] /Encrypt << /Filter /Standard \
                     /V 2 /R 3 /Length 128 /P -4 /O (12345678901234567890123456789012) /U (12345678901234567890123456789012) >>";
    let scanned = pages(&[b"<< /Length 14 >>\nstream\nq /Im0 Do Q   \nendstream".to_vec()], "", &[]);
    // Each form draws the next ten times.
    let forms: Vec<Vec<u8>> = (0..20)
        .map(|level| {
            let content = format!("/X{} Do ", level + 1).repeat(10);
            stream("/Type /XObject /Subtype /Form /BBox [0 0 9 9]", content.as_bytes())
        })
        .collect();
    let names = joined((0..20).map(|level| format!("/X{level} {} 0 R", 5 + level)));
    let growing = pages(&[stream("", b"/X0 Do")], &format!("/XObject << {names} >>"), &forms);
    let itself = pages(
        &[stream("", b"/X Do")],
        "/XObject << /X 5 0 R >>",
        &[stream("/Type /XObject /Subtype /Form /Resources << /XObject << /X 5 0 R >> >>", b"/X Do /X Do")],
    );
    let nested = [b"[".repeat(1_000_000), b"]".repeat(1_000_000), b" TJ".to_vec()].concat();
    let tree = vec![
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        b"<< /Type /Pages /Kids [2 0 R 3 0 R 3 0 R] /Count 2000000000 >>".to_vec(),
        b"<< /Type /Pages /Parent 2 0 R /Kids [2 0 R 3 0 R] /Count -1 >>".to_vec(),
    ];
    vec![
        ("empty", Vec::new()),
        ("text", b"%PDF-1.7\nnot really".to_vec()),
        ("cut", good[..good.len() / 2].to_vec()),
        ("without its table", good[..good.windows(5).position(|part| part == b"xref\n").unwrap_or_default()].to_vec()),
        ("encrypted", file(&pages(&[stream("", &lines("secret"))], "", &[]), encrypted)),
        ("scanned", file(&scanned, "")),
        ("forms that draw forms", file(&growing, "")),
        ("a form that draws itself", file(&itself, "")),
        ("deep arrays", file(&pages(&[stream("", &nested)], "", &[]), "")),
        ("a page tree in a circle", file(&tree, "")),
        ("a table that comes before itself", file(&pages(&[stream("", &lines("x"))], "", &[]), "/Prev 15")),
    ]
}

/// A page that is so many megabytes of spaces, compressed twice.
pub fn bomb(megabytes: usize) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    let block = vec![b' '; 1 << 20];
    for _ in 0..megabytes {
        encoder.write_all(&block).unwrap_or_default();
    }
    let once = encoder.finish().unwrap_or_default();
    let content = stream("/Filter [/FlateDecode /FlateDecode]", &deflated(&once));
    file(&pages(&[content], "", &[]), "")
}

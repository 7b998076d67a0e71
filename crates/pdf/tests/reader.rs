//! Files of all kinds, and what is read of them. Bombs are not among them: they need a process of their own.
#![cfg(feature = "reader")]

use pdf::{Limits, Reading, Unreadable, read};
use testkit::pdf::{compressed, document, file, hostile, lines, pages, stream};

const LIMITS: Limits = Limits { pages: 10, bytes: 10_000, steps: 1_000_000 };

fn text(content: &str) -> String {
    with("", content, &[])
}

/// The text of one page with more resources and objects.
fn with(resources: &str, content: &str, more: &[Vec<u8>]) -> String {
    let file = file(&pages(&[stream("", content.as_bytes())], resources, more), "");
    read(file, LIMITS).map_or_else(|reason| format!("{reason:?}"), |reading| reading.pages.join("|"))
}

#[test]
fn pages_are_read_in_their_order() {
    let texts = ["First page\nwith two lines", "", "Third (page) \\ of three"];
    let expected = Reading { pages: texts.map(Into::into).to_vec(), of: 3, cut: false };
    assert_eq!(read(document(&texts), LIMITS), Ok(expected.clone()));
    let plain: Vec<Vec<u8>> = texts.iter().map(|text| stream("", &lines(text))).collect();
    assert_eq!(read(file(&pages(&plain, "", &[]), ""), LIMITS), Ok(expected));
}

#[test]
fn no_more_is_read_than_is_wanted() {
    let file = document(&["one", "two", "three"]);
    for (limits, pages, cut) in [
        (Limits { pages: 2, bytes: 100, ..LIMITS }, &["one", "two"][..], false),
        (Limits { pages: 9, bytes: 11, ..LIMITS }, &["one", "two", "three"], false),
        (Limits { pages: 9, bytes: 8, ..LIMITS }, &["one", "two", "th"], true),
        (Limits { pages: 9, bytes: 4, ..LIMITS }, &["one", "t"], true),
    ] {
        let reading = read(file.clone(), limits).unwrap();
        assert_eq!((reading.pages, reading.of, reading.cut), (pages.iter().map(|&page| page.into()).collect(), 3, cut));
    }
}

#[test]
fn operators_place_text() {
    for (content, expected) in [
        ("BT /F1 10 Tf (Hello) Tj ( world) Tj ET", "Hello world"),
        ("BT /F1 10 Tf [(Hel) 20 (lo) -300 (world)] TJ ET", "Hello world"),
        ("BT /F1 10 Tf 1 0 0 1 50 700 Tm (a) Tj 1 0 0 1 50 686 Tm (b) Tj ET", "a\nb"),
        ("BT /F1 10 Tf 50 700 Td (a) Tj 0 -14 TD (b) Tj T* (c) Tj (d) ' 0 0 (e) \" ET", "a\nb\nc\nd\ne"),
        ("BT /F1 10 Tf 50 700 Td (left) Tj 200 0 Td (right) Tj ET", "left\tright"),
        ("BT /F1 10 Tf 5 Tc (wide) Tj ET", "wide"),
        ("q 0.1 0 0 0.1 0 0 cm BT /F1 100 Tf (tiny) Tj ( words) Tj ET Q", "tiny words"),
        ("BT /F1 1 Tf 0 12 -12 0 50 50 Tm (turned) Tj -0.3 TL ( text) Tj ET", "turned text"),
        ("BT /F1 10 Tf 3 Tr (hidden layer) Tj ET", "hidden layer"),
        ("BT /Missing 10 Tf (no such font) Tj ET", "no such font"),
        ("BT (no font at all) Tj ET", "no font at all"),
        (r"BT /F1 10 Tf (caf\351 \226 \200) Tj ET", "café – €"),
        ("BT /F1 10 Tf /Span << /ActualText (fi) >> BDC (##) Tj EMC (x) Tj ET", "fix"),
        ("BT /F1 10 Tf /P <</MCID 0>> BDC (one) Tj EMC ( two) Tj ET", "one two"),
        ("0 0 m 10 10 l S BI /W 1 /H 1 /BPC 8 /CS /G ID \u{1} EI BT /F1 10 Tf (after) Tj ET", "after"),
    ] {
        assert_eq!(text(content), expected, "{content}");
    }
}

/// Fonts whose codes mean nothing but what the file says of them, as every word processor makes them.
#[test]
fn codes_have_the_meaning_that_the_file_gives_them() {
    let map = "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /A def /CMapType 2 def\n\
        1 begincodespacerange <0000> <ffff> endcodespacerange\n\
        2 beginbfchar <0003> <0020> <0010> <00660069> endbfchar\n\
        2 beginbfrange <0041> <0043> <4e00> <0050> <0051> [<65e5> <672c>] endbfrange\n\
        endcmap CMapName currentdict /CMap defineresource pop end end";
    let font = |unicode: &str| {
        format!(
            "/Font << /C << /Type /Font /Subtype /Type0 /BaseFont /ABCDEF+Any /Encoding /Identity-H {unicode} /DescendantFonts \
             [<< /Type /Font /Subtype /CIDFontType2 /BaseFont /ABCDEF+Any /DW 1000 /CIDSystemInfo << /Registry (Adobe) \
             /Ordering (Identity) /Supplement 0 >> /FontDescriptor << /Type /FontDescriptor /FontName /ABCDEF+Any /Flags 4 \
             /FontBBox [0 0 1 1] /ItalicAngle 0 /Ascent 1 /Descent 0 /CapHeight 1 /StemV 1 >> >>] >> >>"
        )
    };
    let content = "BT /C 10 Tf <0041004300500051> Tj 0 -14 Td <001000030042> Tj ET";
    let page = |unicode: &str, more: &[Vec<u8>]| {
        let mut objects = pages(&[stream("", content.as_bytes())], "", more);
        let page = String::from_utf8(objects[2].clone()).unwrap();
        let (head, _) = page.split_once("/Resources").unwrap();
        objects[2] = format!("{head} /Resources << {} >> >>", font(unicode)).into_bytes();
        read(file(&objects, ""), LIMITS)
    };
    let said = page("/ToUnicode 5 0 R", &[compressed("", map.as_bytes())]).unwrap();
    assert_eq!(said.pages, ["一丂日本\nfi 丁"]);
    assert_eq!(page("", &[]), Err(Unreadable::NoText), "nobody knows what it says");
}

#[test]
fn forms_and_fields_are_part_of_the_page() {
    let form =
        |content: &[u8]| compressed("/Type /XObject /Subtype /Form /BBox [0 0 99 99] /Matrix [1 0 0 1 0 50]", content);
    let more = [form(b"BT /F1 10 Tf (in a form) Tj ET")];
    assert_eq!(
        with("/XObject << /X 5 0 R >>", "BT /F1 10 Tf 0 700 Td (before) Tj ET /X Do", &more),
        "before\n\nin a form"
    );
    let content = stream("", b"BT /F1 10 Tf 0 700 Td (Name:) Tj ET");
    let filled = [
        stream(
            "/Subtype /Form /Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Courier >> >> >>",
            b"BT /F1 9 Tf (Ada) Tj ET",
        ),
        b"<< /Type /Annot /Subtype /Widget /Rect [60 700 90 712] /AP << /N 5 0 R >> >>".to_vec(),
        b"<< /Type /Annot /Subtype /Widget /F 2 /Rect [60 700 90 712] /AP << /N 5 0 R >> >>".to_vec(),
    ];
    let mut objects = pages(&[content], "", &filled);
    let page = String::from_utf8(objects[2].clone()).unwrap();
    objects[2] = page.replacen("/Type /Page ", "/Type /Page /Annots [6 0 R 7 0 R] ", 1).into_bytes();
    assert_eq!(read(file(&objects, ""), LIMITS).unwrap().pages, ["Name:\nAda"]);
}

#[test]
fn what_cannot_be_read_is_said_and_what_can_is_mended() {
    let found: Vec<(&str, Result<String, Unreadable>)> = hostile()
        .into_iter()
        .filter(|(name, _)| *name != "deep arrays")
        .map(|(name, file)| (name, read(file, LIMITS).map(|reading| reading.text())))
        .collect();
    let expected = [
        ("empty", Err(Unreadable::Damaged)),
        ("text", Err(Unreadable::Damaged)),
        ("cut", Err(Unreadable::Damaged)),
        ("without its table", Ok("[page 1]\nQuarterly figures")),
        ("encrypted", Err(Unreadable::Encrypted)),
        ("scanned", Err(Unreadable::NoText)),
        ("forms that draw forms", Err(Unreadable::Limits)),
        ("a form that draws itself", Err(Unreadable::NoText)),
        ("a page tree in a circle", Err(Unreadable::Damaged)),
        ("a table that comes before itself", Ok("[page 1]\nx")),
    ];
    for ((name, found), (_, expected)) in found.iter().zip(&expected) {
        assert_eq!(found.as_deref().map_err(|reason| *reason), *expected, "{name}");
    }
    assert_eq!(found.len(), expected.len());
}

/// What a file draws again and again is read until the work is too much: all of that is kept.
#[test]
fn forms_of_forms_are_cut_by_their_work() {
    let form = |content: String| stream("/Type /XObject /Subtype /Form /BBox [0 0 9 9]", content.as_bytes());
    let forms: Vec<Vec<u8>> = (0..20).map(|level| form(format!("/X{} Do ", level + 1).repeat(10))).collect();
    let names: Vec<String> = (0..20).map(|level| format!("/X{level} {} 0 R", 5 + level)).collect();
    let resources = format!("/XObject << {} >>", names.join(" "));
    let bomb = |content: &str| file(&pages(&[stream("", content.as_bytes())], &resources, &forms), "");
    let reading = read(bomb("BT /F1 10 Tf (before) Tj ET /X0 Do BT (after) Tj ET"), LIMITS).unwrap();
    assert_eq!(reading, Reading { pages: vec!["before".into()], of: 1, cut: true });
    // Glyphs that are drawn over each other are one, and still work.
    let same = format!("BT /F1 10 Tf {}ET", "1 0 0 1 50 700 Tm (x) Tj ".repeat(1000));
    let limits = Limits { steps: 500, ..LIMITS };
    assert_eq!(read(bomb(&same), limits), Ok(Reading { pages: vec!["x".into()], of: 1, cut: true }));
    assert_eq!(read(bomb(&same), LIMITS), Ok(Reading { pages: vec!["x".into()], of: 1, cut: false }));
}

/// A file that was cut off anywhere is mended or damaged, and never taken for scanned paper.
#[test]
fn a_cut_file_is_not_called_an_image() {
    let plain = file(&pages(&[stream("", &lines("Some words\non a page"))], "", &[]), "");
    let mut parts = pages(&[stream("", &lines("Some words\non a page"))], "", &[]);
    parts[2] = String::from_utf8(parts[2].clone()).unwrap().replace("4 0 R", "[4 0 R]").into_bytes();
    for whole in [plain, file(&parts, ""), document(&["Some words\non a page"])] {
        for end in 0..whole.len() - 1 {
            match read(whole[..end].to_vec(), LIMITS) {
                Ok(reading) => assert!("Some words\non a page".starts_with(&reading.pages[0]), "{end}: {reading:?}"),
                Err(reason) => assert_eq!(reason, Unreadable::Damaged, "{end}"),
            }
        }
    }
}

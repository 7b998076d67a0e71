use super::*;

fn base() -> Url {
    Url::parse("https://a.example/dir/page?x=1").unwrap()
}

fn text(html: &str) -> String {
    markdown(html, &base(), false).text
}

#[test]
fn pages_read_as_people_see_them() {
    for (html, expected) in [
        ("", ""),
        (
            "<h1> A\n <b>bold</b>  title </h1><p>One&nbsp;two<p>three<br>four",
            "# A bold title\n\nOne two\n\nthree\nfour",
        ),
        ("<div>a</div><div><div>b</div></div>c", "a\nb\nc"),
        ("<h2></h2><p>x</p><h6>y</h6>", "x\n\n###### y"),
        ("<ul><li>a<li><p>b</p><ol start=3><li>c</li><li>d</ol></ul>e", "- a\n- b\n  3. c\n  4. d\n\ne"),
        ("<blockquote><p>a</p><p>b</p></blockquote>c", "> a\n> \n> b\n\nc"),
        ("<pre>\n  a\n\tb &lt;\n</pre>c", "```\n  a\n\tb <\n```\n\nc"),
        ("<pre><code>x</code></pre>", "```\nx\n```"),
        ("use <code>a</code>, <code></code><kbd>b</kbd>.", "use `a`, `b`."),
        ("a<hr>b", "a\n\n---\n\nb"),
        ("<img alt='a cat' src=x><img alt=''><img>", "![a cat]"),
        (
            "<table><tr><th>a<th>b</tr><tr><td>1<td><p>2</p><p>3</p></table>x",
            "| a | b |\n| --- | --- |\n| 1 | 2 3 |\n\nx",
        ),
        ("<table><tr><td>1</td><td></td><td>3</td></tr></table>", "| 1 | | 3 |"),
        ("a<!-- x --><script>y</script><style>z</style><noscript>n</noscript>", "an"),
        ("<nav><a href=/m>Menu</a></nav>Text<div role=navigation>m</div>", "Text"),
        (
            "x<div hidden>h<div>h</div>h</div><p style='display : none'>n</p><span style='VISIBILITY:hidden'>v</span>y",
            "xy",
        ),
        ("<svg><title>icon</title><text>t</text></svg><template>t</template><select><option>o</select>y", "y"),
        ("a\u{200b}b&#x202e;c&#xE0041;d\u{7}", "abcd"),
        ("1 &lt; 2 <3", "1 < 2 <3"),
    ] {
        assert_eq!(text(html), expected, "{html}");
    }
}

/// Where something that is left out has no end, the page is not left out with it. A page of nothing else is shown.
#[test]
fn nothing_is_left_out_for_want_of_an_end() {
    assert_eq!(text("a<nav>b<p>c"), "a\nb\n\nc".replace("a\nb", "ab"));
    assert_eq!(text("<div hidden>b</div>"), "b");
    assert_eq!(text("<body hidden>b"), "b");
}

#[test]
fn links_are_written_out() {
    for (html, expected) in [
        ("see <a href='x?a=1&amp;b=2'> the\n page</a>.", "see [the page](https://a.example/dir/x?a=1&b=2)."),
        ("<a href=//b.example/>b</a>", "[b](https://b.example/)"),
        ("<a href='#f'>f</a> <a href='javascript:x()'>j</a> <a href='mailto:x@y'>m</a> <a name=n>n</a>", "f j m n"),
        ("<a href=/x><h3>T</h3><p>s</p></a>y", "### [T s](https://a.example/x)\n\ny"),
        ("<a href=/x><img src=y></a><a href=/z>z", "[z](https://a.example/z)"),
        ("<a href=/x_(y)>a</a><a href='/x)'>b</a>", "[a](https://a.example/x_(y))[b](https://a.example/x%29)"),
        ("<a href=/x>a<a href=/y>b</a>c</a>", "[a](https://a.example/x)[b](https://a.example/y)c"),
        ("<base href='https://c.example/d/'><a href=e>e</a>", "[e](https://c.example/d/e)"),
        ("<base href='file:///etc/'><a href=passwd>e</a>", "e"),
        ("<pre><a href=/x>a</a></pre>", "```\na\n```"),
    ] {
        assert_eq!(text(html), expected, "{html}");
    }
    let page =
        markdown("<a href=x>1</a><a href='x#f'>2</a><pre><a href=y>3</a></pre><a href=file:///e>4</a>", &base(), false);
    assert_eq!(page.links, ["https://a.example/dir/x", "https://a.example/dir/y"]);
}

#[test]
fn a_page_has_a_title() {
    for (html, title) in [
        ("<title> A &amp;\n B </title><title>C</title>", "A & B"),
        ("<svg><title>icon</title></svg><title></title><TITLE>T</TITLE>", "T"),
        ("<p>none", ""),
        ("<title>a\u{202e}b</title>", "ab"),
    ] {
        assert_eq!(markdown(html, &base(), false).title, title);
    }
    assert_eq!(markdown(&format!("<title>{}", "é".repeat(5000)), &base(), false).title.chars().count(), LONGEST_TITLE);
}

/// Whatever is nested or repeated without end costs what its length costs, on a thread with a small stack.
#[test]
fn no_page_is_too_deep_or_too_much() {
    let times = |what: &str| what.repeat((640 << 10) / what.len());
    let thread = std::thread::Builder::new().stack_size(256 << 10).spawn(move || {
        for what in [
            "<div>",
            "<b>",
            "<b a>",
            "<ul><li>",
            "<blockquote>x",
            "<table><tr><td>",
            "<a href=x>",
            "<a href=x>y",
            "<pre>x\n",
            "<nav>",
            "<div hidden>",
            "<svg>",
            "<p hidden>",
            "</div>",
            "<b>a</b>",
            "<span>x</span> ",
            "<",
            "<!--",
            "<!",
            "</",
            "&",
            "&#",
            "&amp",
            "<p a",
            "a=b ",
            "<script>",
            "<title>",
            "<h1>",
            "<code>x",
            "<li>",
            "<td>",
            "<br>x",
            "<option>",
            "\u{e0041}",
            "<textarea></textarea",
        ] {
            let read = markdown(&times(what), &base(), false);
            assert!(read.text.len() <= MOST_TEXT + (4 << 20), "{what}: {}", read.text.len());
        }
        // A tag of nothing but attributes; a base that makes each link long.
        let attributes = (0..200_000).map(|number| format!(" a{number}=x")).collect::<Vec<_>>().concat();
        markdown(&format!("<a{attributes}>x"), &base(), false);
        let long = format!("<base href='https://b.example/{}/'>{}", "x".repeat(1900), times("<a href=x>y</a>"));
        let read = markdown(&long, &base(), false);
        assert!(read.text.len() <= MOST_TEXT + (4 << 20) && read.links.len() == 1);
    });
    thread.unwrap().join().unwrap();
}

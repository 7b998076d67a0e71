//! What is filled into forms, and notes that are drawn on the page: the appearances of annotations, after the page's own
//! text.

use hayro_font::kurbo::Affine;
use hayro_syntax::object::{Array, Dict, Name, Rect, Stream};
use hayro_syntax::page::Page;

use super::interpreter::Interpreter;

/// Bits of `F`: not shown at all, or not on a screen.
const HIDDEN: i32 = 1 << 1 | 1 << 5;
/// Of one page.
const MOST: usize = 10_000;

pub(super) fn read<'a>(interpreter: &mut Interpreter<'_, 'a>, page: &Page<'a>) {
    let Some(annotations) = page.raw().get::<Array<'a>>("Annots") else { return };
    for annotation in annotations.iter::<Dict<'a>>().take(MOST) {
        if annotation.get::<i32>("F").unwrap_or_default() & HIDDEN != 0 {
            continue;
        }
        let Some(appearance) = appearance(&annotation) else { continue };
        let place =
            annotation.get::<Rect>("Rect").map_or(Affine::IDENTITY, |rect| Affine::translate((rect.x0, rect.y0)));
        interpreter.part(&appearance, place);
    }
}

/// The one that is shown: that of the state it is in, where there are several.
fn appearance<'a>(annotation: &Dict<'a>) -> Option<Stream<'a>> {
    let appearances = annotation.get::<Dict<'a>>("AP")?;
    if let Some(normal) = appearances.get::<Stream<'a>>("N") {
        return Some(normal);
    }
    let state = annotation.get::<Name<'a>>("AS")?;
    appearances.get::<Dict<'a>>("N")?.get::<Stream<'a>>(&*state)
}

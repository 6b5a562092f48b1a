//! How a site presents itself: a colour of its own, and a logo.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::inventory::{Colour, ColourError};

/// A site's own colour. It marks what is yours and what to press, on light pages and on dark ones, so it must be seen
/// on both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Accent(Colour);

/// What WCAG 2.2 asks of everything that is no text (criterion 1.4.11).
const CONTRAST_MIN: f64 = 3.0;
/// The lightest page that it stands on, and the darkest.
const WHITE: [u8; 3] = [0xff, 0xff, 0xff];
const NEAR_BLACK: [u8; 3] = [0x12, 0x12, 0x12];

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AccentError {
    #[error(transparent)]
    Colour(#[from] ColourError),
    #[error(
        "`{colour}` is hardly seen on {}: its contrast is {contrast:.1} to 1, and at least {CONTRAST_MIN} to 1 is needed \
         on white and on near-black (#121212); choose a {} one",
        unseen_on(*is_too_light),
        better(*is_too_light)
    )]
    Contrast {
        colour: String,
        is_too_light: bool,
        contrast: f64,
    },
}

fn unseen_on(is_too_light: bool) -> &'static str {
    if is_too_light { "white" } else { "near-black" }
}

fn better(is_too_light: bool) -> &'static str {
    if is_too_light { "darker" } else { "lighter" }
}

impl Accent {
    pub fn colour(&self) -> &Colour {
        &self.0
    }
}

impl FromStr for Accent {
    type Err = AccentError;
    fn from_str(text: &str) -> Result<Self, AccentError> {
        let colour: Colour = text.parse()?;
        for (page, is_too_light) in [(WHITE, true), (NEAR_BLACK, false)] {
            let contrast = contrast(colour.rgb(), page);
            if contrast < CONTRAST_MIN {
                return Err(AccentError::Contrast {
                    colour: colour.into(),
                    is_too_light,
                    contrast,
                });
            }
        }
        Ok(Self(colour))
    }
}

impl TryFrom<String> for Accent {
    type Error = AccentError;
    fn try_from(text: String) -> Result<Self, AccentError> {
        text.parse()
    }
}

impl From<Accent> for String {
    fn from(accent: Accent) -> String {
        accent.0.into()
    }
}

impl fmt::Display for Accent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from(self.0.clone()))
    }
}

/// The contrast of two colours as WCAG defines it, from 1 to 21.
fn contrast(a: [u8; 3], b: [u8; 3]) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

fn luminance(rgb: [u8; 3]) -> f64 {
    let [red, green, blue] = rgb.map(|channel| {
        let channel = f64::from(channel) / 255.0;
        if channel <= 0.04045 {
            channel / 12.92
        } else {
            ((channel + 0.055) / 1.055).powf(2.4)
        }
    });
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

/// The largest logo that is kept.
pub const LOGO_BYTES_MAX: usize = 128 * 1024;

/// An image that browsers show, told by what is in it and not by what it is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logo {
    kind: LogoKind,
    content: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogoKind {
    Png,
    WebP,
    Svg,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LogoError {
    #[error("a logo has at most 128 KiB")]
    TooLarge,
    #[error(
        "this is no PNG, WebP or SVG image; what a file is called does not matter, only what is in it"
    )]
    Unknown,
    #[error(
        "an SVG logo begins with its `<svg>` element, after at most an XML declaration and comments"
    )]
    Declarations,
}

impl LogoKind {
    pub fn media_type(self) -> &'static str {
        match self {
            LogoKind::Png => "image/png",
            LogoKind::WebP => "image/webp",
            LogoKind::Svg => "image/svg+xml",
        }
    }
}

impl Logo {
    pub fn read(content: Vec<u8>) -> Result<Logo, LogoError> {
        if content.len() > LOGO_BYTES_MAX {
            return Err(LogoError::TooLarge);
        }
        let kind = kind_of(&content)?;
        Ok(Logo { kind, content })
    }

    pub fn kind(&self) -> LogoKind {
        self.kind
    }

    pub fn content(&self) -> &[u8] {
        &self.content
    }

    pub fn into_content(self) -> Vec<u8> {
        self.content
    }
}

fn kind_of(content: &[u8]) -> Result<LogoKind, LogoError> {
    if content.starts_with(b"\x89PNG\r\n\x1a\n") && content.get(12..16) == Some(b"IHDR") {
        return Ok(LogoKind::Png);
    }
    if content.starts_with(b"RIFF") && content.get(8..12) == Some(b"WEBP") {
        return Ok(LogoKind::WebP);
    }
    let text = std::str::from_utf8(content).map_err(|_| LogoError::Unknown)?;
    svg(text.trim_start_matches('\u{feff}'))
}

/// Passes over what may stand before the first element. Document types are refused: they can define entities, which
/// nobody needs in a logo.
fn svg(text: &str) -> Result<LogoKind, LogoError> {
    let mut rest = text.trim_start();
    loop {
        let after = if let Some(declaration) = rest.strip_prefix("<?") {
            declaration.split_once("?>")
        } else if let Some(comment) = rest.strip_prefix("<!--") {
            comment.split_once("-->")
        } else if rest.starts_with("<!") {
            return Err(LogoError::Declarations);
        } else {
            break;
        };
        rest = after.ok_or(LogoError::Unknown)?.1.trim_start();
    }
    let name_ends = |rest: &str| rest.starts_with([' ', '\t', '\r', '\n', '>', '/']);
    match rest.strip_prefix("<svg") {
        Some(rest) if name_ends(rest) && !text.contains('\0') => Ok(LogoKind::Svg),
        _ => Err(LogoError::Unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_accent_is_seen_on_light_and_on_dark_pages() {
        for good in ["#1f77b4", "#D62728", "#0072b2", "#7f7f7f"] {
            assert!(good.parse::<Accent>().is_ok(), "{good}");
        }
        let said = |text: &str| text.parse::<Accent>().unwrap_err().to_string();
        assert_eq!(
            said("#FFFF00"),
            "`#ffff00` is hardly seen on white: its contrast is 1.1 to 1, and at least 3 to 1 is needed on white and on \
             near-black (#121212); choose a darker one"
        );
        assert!(said("#000080").contains("on near-black: its contrast is 1.2 to 1"));
        assert!(said("#000080").ends_with("choose a lighter one"));
        assert_eq!(said("blue"), "a colour is written like `#1f77b4`");
    }

    #[test]
    fn contrast_is_that_of_wcag() {
        assert!((contrast(WHITE, [0, 0, 0]) - 21.0).abs() < 1e-9);
        assert!((contrast([0x76, 0x76, 0x76], WHITE) - 4.54).abs() < 0.01);
    }

    fn png() -> Vec<u8> {
        let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        png.extend([0; 17]);
        png
    }

    #[test]
    fn a_logo_is_told_by_what_is_in_it() {
        let kind = |content: &[u8]| Logo::read(content.to_vec()).map(|logo| logo.kind());
        assert_eq!(kind(&png()), Ok(LogoKind::Png));
        assert_eq!(kind(b"RIFF\x10\0\0\0WEBPVP8 "), Ok(LogoKind::WebP));
        for svg in [
            "<svg xmlns=\"http://www.w3.org/2000/svg\"/>",
            "\u{feff}<?xml version=\"1.0\"?>\n<!-- made by hand --> <svg>\n</svg>",
        ] {
            assert_eq!(kind(svg.as_bytes()), Ok(LogoKind::Svg), "{svg}");
        }
        for other in [
            &b""[..],
            b"GIF89a",
            b"<html><svg></svg></html>",
            b"<svgx></svgx>",
            b"<?xml",
            b"RIFF\0\0\0\0WAVE",
            b"\x89PNG\r\n\x1a\n",
            b"\xff\xfe<svg>",
        ] {
            assert_eq!(kind(other), Err(LogoError::Unknown), "{other:?}");
        }
        let entities = b"<!DOCTYPE svg [<!ENTITY a \"b\">]><svg/>";
        assert_eq!(kind(entities), Err(LogoError::Declarations));
    }

    #[test]
    fn a_logo_has_bounds() {
        let mut large = png();
        large.resize(LOGO_BYTES_MAX, 0);
        assert!(Logo::read(large.clone()).is_ok());
        large.push(0);
        assert_eq!(Logo::read(large), Err(LogoError::TooLarge));
    }
}

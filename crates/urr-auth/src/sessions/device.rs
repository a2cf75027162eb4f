//! The device of a login, in words: its browser and its system, as far as the user agent tells.

/// The names in user agents, the most special first: most browsers also claim to be others.
const BROWSERS: [(&str, &str); 11] = [
    ("KAKAOTALK", "KakaoTalk"),
    ("NAVER(", "Naver"),
    ("Whale/", "Whale"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("FxiOS/", "Firefox"),
    ("Firefox/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
];
const SYSTEMS: [(&str, &str); 7] = [
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
];
const NAME_CHARS_MAX: usize = 40;

/// Such as `Chrome · Windows`. `None` if nothing is known.
pub fn device_name(user_agent: &str) -> Option<String> {
    let find = |names: &[(&str, &'static str)]| {
        names.iter().find(|(part, _)| user_agent.contains(part)).map(|(_, name)| *name)
    };
    match (find(&BROWSERS), find(&SYSTEMS)) {
        (Some(browser), Some(system)) => Some(format!("{browser} · {system}")),
        (Some(one), None) | (None, Some(one)) => Some(one.to_owned()),
        // Programs name themselves first, as `curl/8.5.0`.
        (None, None) => {
            let name = user_agent.split(['/', ' ']).next().filter(|name| !name.is_empty())?;
            Some(name.chars().take(NAME_CHARS_MAX).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_named_by_browser_and_system() {
        for (agent, expected) in [
            (
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) \
                 Chrome/142.0.0.0 Safari/537.36 Edg/142.0.0.0",
                "Edge · Windows",
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 \
                 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1",
                "Safari · iPhone",
            ),
            (
                "Mozilla/5.0 (Linux; Android 15; SM-S921N) AppleWebKit/537.36 (KHTML, like Gecko) \
                 SamsungBrowser/28.0 Chrome/130.0.0.0 Mobile Safari/537.36",
                "Samsung Internet · Android",
            ),
            ("curl/8.5.0", "curl"),
        ] {
            assert_eq!(device_name(agent).as_deref(), Some(expected));
        }
        assert_eq!(device_name(""), None);
        assert_eq!(device_name(&"x".repeat(300)).map(|name| name.len()), Some(NAME_CHARS_MAX));
    }
}

//! The content security policy of pages: scripts and styles are files of ours, or inline ones whose
//! hash is in the policy. `unsafe-inline` never is.

use axum::http::HeaderValue;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// Whose scripts and windows pages may load beside ours: those of the providers that payments and
/// identity checks go to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProviderScripts {
    pub has_toss: bool,
    pub has_portone: bool,
}

impl ProviderScripts {
    /// PortOne's script calls its servers under their older name.
    fn hosts(self) -> String {
        let toss = self.has_toss.then_some(" https://*.tosspayments.com");
        let portone = self.has_portone.then_some(" https://*.portone.io https://*.iamport.co");
        [toss, portone].into_iter().flatten().collect()
    }
}

/// The policy of a page with these inline scripts and styles.
pub fn content_policy(html: &str, providers: ProviderScripts) -> HeaderValue {
    let hosts = providers.hosts();
    let (scripts, styles) = (hashes(html, "script"), hashes(html, "style"));
    let frames = if hosts.is_empty() { " 'none'" } else { &hosts };
    let policy = format!(
        "default-src 'none'; script-src 'self'{scripts}{hosts}; style-src 'self'{styles}; \
         img-src 'self' data: blob: https:; font-src 'self'; connect-src 'self'{hosts}; \
         manifest-src 'self'; worker-src 'self'; frame-src{frames}; form-action 'self'{hosts}; \
         base-uri 'none'; frame-ancestors 'none'"
    );
    HeaderValue::try_from(policy).expect("a policy is ASCII")
}

/// The hashes of the inline elements of this name, each after a blank. Elements with a source and
/// data blocks need none.
fn hashes(html: &str, name: &str) -> String {
    let (opening, closing) = (format!("<{name}"), format!("</{name}>"));
    let mut hashes = String::new();
    let mut rest = html;
    while let Some(at) = rest.find(&opening) {
        rest = &rest[at + opening.len()..];
        let Some((attributes, after)) = rest.split_once('>') else { break };
        let Some((content, after)) = after.split_once(&closing) else { break };
        rest = after;
        let is_element = attributes.is_empty() || attributes.starts_with([' ', '\n', '\t']);
        if is_element && !attributes.contains("src=") && !attributes.contains("json") {
            hashes.push_str(" 'sha256-");
            STANDARD.encode_string(Sha256::digest(content), &mut hashes);
            hashes.push('\'');
        }
    }
    hashes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inline_scripts_are_allowed_by_their_hash_and_nothing_else_is() {
        // The example of the specification (CSP 3, section 8.3).
        let html = "<script>alert('Hello, world.');</script>";
        let hash = " 'sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng='";
        assert_eq!(hashes(html, "script"), hash);
        for (html, expected) in [
            ("<script src=\"/a.js\"></script>", ""),
            ("<script type=\"application/json\">{}</script>", ""),
            ("<scripted>alert('Hello, world.');</scripted>", ""),
            ("<script\n>alert('Hello, world.');</script>", hash),
            ("<script defer>alert('Hello, world.');</script><script", hash),
            ("<script>", ""),
        ] {
            assert_eq!(hashes(html, "script"), expected, "{html}");
        }
        let policy = content_policy(html, ProviderScripts::default());
        let policy = policy.to_str().unwrap();
        assert!(policy.contains(&format!("script-src 'self'{hash}; style-src 'self'; ")));
        assert!(!policy.contains("unsafe") && !policy.contains("*"), "{policy}");
    }

    #[test]
    fn w_1_a_configured_provider_may_load_its_scripts_and_windows() {
        let portone = "https://*.portone.io https://*.iamport.co";
        let both = format!("https://*.tosspayments.com {portone}");
        for (has_toss, has_portone, host) in [
            (true, false, "https://*.tosspayments.com"),
            (false, true, portone),
            (true, true, &both),
        ] {
            let policy = content_policy("", ProviderScripts { has_toss, has_portone });
            let policy = policy.to_str().unwrap();
            let parts =
                ["script-src 'self'", "connect-src 'self'", "frame-src", "form-action 'self'"];
            for part in parts {
                assert!(policy.contains(&format!("{part} {host};")), "{part} of {policy}");
            }
        }
        let own = content_policy("", ProviderScripts::default());
        let own = own.to_str().unwrap();
        assert!(own.contains("frame-src 'none'") && own.contains("form-action 'self';"), "{own}");
    }
}

//! Whether the host of an address is this machine. Traffic to this machine needs no encryption and no proxy.

use core::net::IpAddr;

/// Whether the host is `localhost` or a loopback address. Any other name counts as another machine, whatever it begins with or resolves to.
/// An IPv6 address may stand in brackets.
pub fn is_loopback(host: &str) -> bool {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    host.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Like [`is_loopback`], for the part of a URL between `//` and the path: a host, perhaps with a port. Anything else in it, such as a user
/// name, makes it another machine.
pub fn is_loopback_authority(authority: &str) -> bool {
    let end = authority.rfind(']').map_or(0, |bracket| bracket + 1);
    match authority[end..].split_once(':') {
        Some((rest, port)) => {
            let host = &authority[..end + rest.len()];
            port.bytes().all(|byte| byte.is_ascii_digit()) && is_loopback(host)
        }
        None => is_loopback(authority),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_loopback() {
        for host in ["localhost", "LocalHost", "127.0.0.1", "127.8.0.1", "::1", "[::1]"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["localhost.example.com", "127.0.0.1.example.com", "127.evil.example", "0.0.0.0", "192.0.2.1", ""] {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn a_port_may_follow_the_host_and_nothing_else() {
        for authority in ["localhost", "localhost:80", "127.0.0.1:4711", "[::1]", "[::1]:4711"] {
            assert!(is_loopback_authority(authority), "{authority}");
        }
        for authority in
            ["localhost.example.com", "localhost@example.com", "localhost:80@example.com", "127.0.0.1:x", "[::1]x", ""]
        {
            assert!(!is_loopback_authority(authority), "{authority}");
        }
    }
}

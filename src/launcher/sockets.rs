//! Reads `/proc` for information about TCP sockets of this machine: who is at the other end of a connection, and who listens on a port.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::MetadataExt;

use super::procfs;

/// The state of a socket that listens.
const LISTEN: u8 = 0x0a;

/// One line of `/proc/net/tcp` or `tcp6`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpSocket {
    pub local: SocketAddr,
    pub remote: SocketAddr,
    pub listens: bool,
    pub uid: u32,
    /// 0 if no process has it open any more.
    pub inode: u64,
}

/// Returns the other end of a connection of this process, if it is on this machine and in this network namespace.
pub fn other_end(ours: SocketAddr, theirs: SocketAddr) -> Option<TcpSocket> {
    let (ours, theirs) = (canonical(ours), canonical(theirs));
    all().find(|socket| !socket.listens && socket.local == theirs && socket.remote == ours)
}

/// Returns the socket that listens at this address, or at all addresses with this port.
pub fn listener(address: SocketAddr) -> Option<TcpSocket> {
    let address = canonical(address);
    let is_it = |local: SocketAddr| {
        local.port() == address.port()
            && (local.ip() == address.ip() || local.ip().is_unspecified() || address.ip().is_unspecified())
    };
    all().find(|socket| socket.listens && is_it(socket.local))
}

/// Returns a process that has this socket open, among those that may be inspected. `first` are tried before all others.
pub fn holder(inode: u64, first: &[i32]) -> Option<i32> {
    let wanted = format!("socket:[{inode}]");
    let holds = |pid: &i32| {
        let Ok(open) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
        open.flatten().any(|entry| fs::read_link(entry.path()).is_ok_and(|link| link.as_os_str() == wanted.as_str()))
    };
    let known = first.iter().copied().find(|pid| holds(pid));
    known.or_else(|| procfs::pids().into_iter().filter(|pid| !first.contains(pid)).find(|pid| holds(pid)))
}

/// Returns the name of a process as the kernel shows it.
pub fn program_of(pid: i32) -> Option<String> {
    Some(fs::read_to_string(format!("/proc/{pid}/comm")).ok()?.trim().to_owned())
}

/// Whether a process belongs to another user.
pub fn is_of_another_user(pid: i32) -> bool {
    fs::metadata(format!("/proc/{pid}")).is_ok_and(|found| found.uid() != nix::unistd::getuid().as_raw())
}

fn all() -> impl Iterator<Item = TcpSocket> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| fs::read_to_string(path).unwrap_or_default());
    tables.into_iter().flat_map(|table| table.lines().filter_map(parse).collect::<Vec<_>>())
}

/// Converts an IPv4 address from the table of IPv6.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

fn parse(line: &str) -> Option<TcpSocket> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    Some(TcpSocket {
        local: parse_address(fields.get(1)?)?,
        remote: parse_address(fields.get(2)?)?,
        listens: u8::from_str_radix(fields.get(3)?, 16).ok()? == LISTEN,
        uid: fields.get(7)?.parse().ok()?,
        inode: fields.get(9)?.parse().ok()?,
    })
}

/// Parses an address: hexadecimal words of 32 bits in the machine's byte order, a colon, the port.
fn parse_address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| u32::from_str_radix(address.get(at..at + 8)?, 16).ok().map(u32::to_ne_bytes);
    let address = match address.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for (part, at) in bytes.chunks_exact_mut(4).zip([0, 8, 16, 24]) {
                part.copy_from_slice(&word(at)?);
            }
            IpAddr::V6(Ipv6Addr::from(bytes))
        }
        _ => return None,
    };
    Some(canonical(SocketAddr::new(address, port)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_both_tables_are_understood() {
        let line = "  0: 0100007F:1F90 0200007F:C350 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0 100 0 0 10 0";
        let socket = parse(line).unwrap();
        assert_eq!(
            (socket.local.to_string(), socket.remote.to_string()),
            ("127.0.0.1:8080".into(), "127.0.0.2:50000".into())
        );
        assert_eq!((socket.listens, socket.uid, socket.inode), (true, 1000, 4711));
        let mapped = parse_address("0000000000000000FFFF00000100007F:0050").unwrap();
        assert_eq!(mapped.to_string(), "127.0.0.1:80");
        assert_eq!(parse_address("00000000000000000000000001000000:0050").unwrap().to_string(), "[::1]:80");
        assert!(parse("  sl  local_address rem_address   st").is_none());
    }

    #[test]
    fn the_other_end_of_a_connection_and_a_listener_are_found_with_their_process() {
        let us = i32::try_from(std::process::id()).unwrap();
        let listening = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listening.local_addr().unwrap();
        let client = std::net::TcpStream::connect(address).unwrap();
        let (_accepted, theirs) = listening.accept().unwrap();
        let end = other_end(address, theirs).unwrap();
        assert_eq!(end.local, client.local_addr().unwrap());
        assert_eq!(holder(end.inode, &[]), Some(us));
        assert_eq!(holder(listener(address).unwrap().inode, &[us]), Some(us));
        assert!(other_end(theirs, address).is_none_or(|ours| ours.local == address));
        assert!(program_of(us).is_some() && !is_of_another_user(us));
    }
}

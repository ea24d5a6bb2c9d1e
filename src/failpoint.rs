//! Named places where a crash is tried out. In a build with the feature `failpoints`, `DIRIGENT_FAILPOINT=name[:n]` ends the
//! process there at the n-th passage as a power cut would, and `DIRIGENT_FAILPOINT_TRACE=FILE` lists every passage.
//! Without the feature there is nothing to arm.

/// `failpoint!("area.what_has_just_happened")`; a second argument is a further part of the name that is known at run time.
macro_rules! failpoint {
    ($name:literal) => {
        #[cfg(feature = "failpoints")]
        $crate::failpoint::passed($name);
    };
    ($name:literal, $part:expr) => {{
        let _part: &str = $part;
        #[cfg(feature = "failpoints")]
        $crate::failpoint::passed(&format!("{}.{}", $name, _part));
    }};
}

#[cfg(feature = "failpoints")]
mod armed {
    use std::io::Write;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    struct Armed {
        name: String,
        passages_left: AtomicU64,
    }

    fn armed() -> Option<&'static Armed> {
        static ARMED: OnceLock<Option<Armed>> = OnceLock::new();
        ARMED
            .get_or_init(|| {
                let wanted = std::env::var("DIRIGENT_FAILPOINT").ok()?;
                let (name, passage) = match wanted.split_once(':') {
                    Some((name, number)) => (name.to_owned(), number.parse().ok()?),
                    None => (wanted, 1),
                };
                Some(Armed { name, passages_left: AtomicU64::new(passage) })
            })
            .as_ref()
    }

    /// Ends the process if this is the wanted passage of the wanted place.
    pub fn passed(name: &str) {
        if let Some(trace) = std::env::var_os("DIRIGENT_FAILPOINT_TRACE")
            && let Ok(mut file) = std::fs::OpenOptions::new().create(true).append(true).open(trace)
        {
            let _ = file.write_all(format!("{name}\n").as_bytes());
        }
        let Some(armed) = armed().filter(|armed| armed.name == name) else { return };
        if armed.passages_left.fetch_sub(1, Ordering::SeqCst) == 1 {
            let _ = nix::sys::signal::kill(nix::unistd::getpid(), nix::sys::signal::Signal::SIGKILL);
            // The signal may take a moment to arrive; nothing may happen in it.
            loop {
                std::thread::park();
            }
        }
    }
}

#[cfg(feature = "failpoints")]
pub use armed::passed;

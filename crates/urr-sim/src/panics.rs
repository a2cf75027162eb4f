//! Notices panics of the product, wherever they are caught: a task or a transaction that panics
//! would otherwise only look like one that failed.

use std::cell::{Cell, RefCell};
use std::io::{Write, stderr};
use std::panic::{set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static IS_WATCHED: Cell<bool> = const { Cell::new(false) };
    static SEEN: RefCell<Option<String>> = const { RefCell::new(None) };
}

static INSTALLED: Once = Once::new();

/// While it lives, panics of this thread are noted and not printed.
pub struct PanicWatch(());

pub fn watch() -> PanicWatch {
    INSTALLED.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |panic| match IS_WATCHED.get() {
            true => SEEN.with_borrow_mut(|seen| *seen = Some(panic.to_string())),
            false => usual(panic),
        }));
    });
    SEEN.take();
    IS_WATCHED.set(true);
    PanicWatch(())
}

impl Drop for PanicWatch {
    fn drop(&mut self) {
        IS_WATCHED.set(false);
        // Not one of the product: the simulation itself is broken.
        if std::thread::panicking()
            && let Some(what) = take()
        {
            writeln!(stderr(), "{what}").ok();
        }
    }
}

/// The last panic since this was asked.
pub fn take() -> Option<String> {
    SEEN.take()
}

//! Who uses the machine: most tests beside each other, a test of a whole cluster alone.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

static USERS: Mutex<MachineUsers> =
    Mutex::new(MachineUsers { sharing: 0, waiting: 0, is_taken: false });
static CHANGED: Condvar = Condvar::new();

struct MachineUsers {
    sharing: usize,
    /// Those who want it alone.
    waiting: usize,
    is_taken: bool,
}

/// The use of the machine, which ends when it is dropped.
pub struct MachineUse {
    is_alone: bool,
}

fn users() -> MutexGuard<'static, MachineUsers> {
    // A test that failed with it has changed nothing.
    USERS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wait_while(is_so: fn(&mut MachineUsers) -> bool) -> MutexGuard<'static, MachineUsers> {
    CHANGED.wait_while(users(), is_so).unwrap_or_else(PoisonError::into_inner)
}

impl MachineUse {
    /// Beside others, unless one of them is alone or waits to be. Where the machine is shared already,
    /// whoever asks is let in: a test may ask twice.
    pub fn shared() -> MachineUse {
        let mut users =
            wait_while(|users| users.is_taken || (users.sharing == 0 && users.waiting > 0));
        users.sharing += 1;
        MachineUse { is_alone: false }
    }

    /// When nobody else uses it.
    pub fn alone() -> MachineUse {
        users().waiting += 1;
        let mut users = wait_while(|users| users.is_taken || users.sharing > 0);
        users.waiting -= 1;
        users.is_taken = true;
        MachineUse { is_alone: true }
    }
}

impl Drop for MachineUse {
    fn drop(&mut self) {
        let mut users = users();
        match self.is_alone {
            true => users.is_taken = false,
            false => users.sharing -= 1,
        }
        CHANGED.notify_all();
    }
}

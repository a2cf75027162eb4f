//! Who uses the machine: most tests beside each other, a test of a whole cluster alone.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The machine that the tests of this process share.
pub static MACHINE: Machine = Machine::new();

pub struct Machine {
    users: Mutex<MachineUsers>,
    changed: Condvar,
}

struct MachineUsers {
    sharing: usize,
    /// Those who want it alone.
    waiting: usize,
    is_taken: bool,
}

/// The use of a machine, which ends when it is dropped.
pub struct MachineUse<'a> {
    machine: &'a Machine,
    is_alone: bool,
}

impl Machine {
    const fn new() -> Machine {
        let users = MachineUsers { sharing: 0, waiting: 0, is_taken: false };
        Machine { users: Mutex::new(users), changed: Condvar::new() }
    }

    fn users(&self) -> MutexGuard<'_, MachineUsers> {
        // A test that failed with it has changed nothing.
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_while(&self, is_so: fn(&mut MachineUsers) -> bool) -> MutexGuard<'_, MachineUsers> {
        self.changed.wait_while(self.users(), is_so).unwrap_or_else(PoisonError::into_inner)
    }

    /// Beside others, unless one of them is alone or waits to be. Where the machine is shared
    /// already, whoever asks is let in: a test may ask twice.
    pub fn share(&self) -> MachineUse<'_> {
        let mut users =
            self.wait_while(|users| users.is_taken || (users.sharing == 0 && users.waiting > 0));
        users.sharing += 1;
        MachineUse { machine: self, is_alone: false }
    }

    /// When nobody else uses it.
    pub fn take(&self) -> MachineUse<'_> {
        self.users().waiting += 1;
        let mut users = self.wait_while(|users| users.is_taken || users.sharing > 0);
        users.waiting -= 1;
        users.is_taken = true;
        MachineUse { machine: self, is_alone: true }
    }
}

impl Drop for MachineUse<'_> {
    fn drop(&mut self) {
        let mut users = self.machine.users();
        match self.is_alone {
            true => users.is_taken = false,
            false => users.sharing -= 1,
        }
        self.machine.changed.notify_all();
    }
}

#[test]
fn who_wants_the_machine_alone_has_it_so_and_a_test_may_use_it_twice() {
    let machine = Machine::new();
    let uses = Mutex::new(Vec::new());
    let note = |what| uses.lock().unwrap().push(what);
    let first = machine.share();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _alone = machine.take();
            note("alone");
            // Whoever comes now waits.
            scope.spawn(|| {
                let _shared = machine.share();
                note("shared again");
            });
            for _ in 0..100 {
                std::thread::yield_now();
            }
            note("still alone");
        });
        while machine.users().waiting == 0 {
            std::thread::yield_now();
        }
        drop(machine.share());
        note("shared twice");
        drop(first);
    });
    let uses = uses.into_inner().unwrap();
    assert_eq!(uses, ["shared twice", "alone", "still alone", "shared again"]);
}

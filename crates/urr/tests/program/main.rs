//! The program as its users have it: the real binary, an empty folder, and what it says and does.

mod accounts;
mod audit;
mod configuration;
mod dead_letters;
mod distributed;
mod http;
mod interface;
mod migration;
mod money;
mod program;
mod purchase;
mod queue;
mod refusals;
mod running;
mod stats;

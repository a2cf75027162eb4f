//! The program as its users have it: the real binary, an empty folder, and what it says and does.

// `json!` of many fields.
#![recursion_limit = "256"]

mod admin;
mod audit;
mod chaos;
mod config;
mod distributed_purchase;
mod dlq;
mod http_client;
mod kill_during_payment;
mod migrate;
mod openapi_fuzz;
mod process;
mod queue;
mod rush;
mod serve;
mod startup_errors;
mod stats;
mod up;
mod whole_audit;

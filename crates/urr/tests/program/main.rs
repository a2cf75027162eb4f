//! The program as its users have it: the real binary, an empty folder, and what it says and does.

// `json!` of many fields.
#![recursion_limit = "256"]

mod admin;
mod audit;
mod backup;
mod chaos;
mod cluster;
mod config;
mod distributed_purchase;
mod dlq;
mod failover;
mod http_client;
mod kill_during_payment;
mod machine;
mod many_purchases;
mod migrate;
mod openapi_fuzz;
mod own_secrets;
mod point_in_time;
mod process;
mod queue;
mod relocate;
mod rush;
mod serve;
mod startup_errors;
mod stats;
mod stopping;
mod tls;
mod traces;
mod up;
mod upgrade;
mod watch;
mod whole_audit;
mod worker;

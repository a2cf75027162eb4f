//! Tests of the whole program in one process: its API, chains of events through all services, and
//! crashes.

mod app;

pub use app::{Deployment, TestApp, TestRequest, TestResponse};

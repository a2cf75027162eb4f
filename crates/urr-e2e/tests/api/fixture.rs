//! Running a case on both forms.

use std::future::Future;

use urr_e2e::{Deployment, TestApp};
use urr_test::engines;

pub fn run<F: Future<Output = ()>>(form: Deployment, case: impl FnOnce(TestApp) -> F) {
    engines::block_on(async {
        if let Some(app) = TestApp::start(form).await {
            case(app).await;
        }
    });
}

/// Declares cases that run on both forms: `on_both_deployments! { async fn name(app: TestApp) { … } }`.
#[macro_export]
macro_rules! on_both_deployments {
    ($($cases:tt)*) => {
        urr_test::on_both! {
            run = $crate::fixture::run,
            embedded = urr_e2e::Deployment::Embedded,
            distributed = urr_e2e::Deployment::Distributed;
            $($cases)*
        }
    };
}

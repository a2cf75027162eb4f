//! Running a case on both forms.

use std::future::Future;

use urr_test::app::{Form, TestApp};
use urr_test::engines;

pub fn run<F: Future<Output = ()>>(form: Form, case: impl FnOnce(TestApp) -> F) {
    engines::block_on(async {
        if let Some(app) = TestApp::start(form).await {
            case(app).await;
        }
    });
}

/// Declares cases that run on both forms: `on_both_forms! { async fn name(app: TestApp) { … } }`.
#[macro_export]
macro_rules! on_both_forms {
    ($($cases:tt)*) => {
        urr_test::on_both! {
            run = $crate::fixture::run,
            embedded = urr_test::app::Form::Embedded,
            distributed = urr_test::app::Form::Distributed;
            $($cases)*
        }
    };
}

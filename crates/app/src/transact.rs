//! The `transact!` macro: runs a transaction, with retries.

use crate::error::Result;

/// Runs a block inside a transaction and commits it. Retries from the start if another transaction interfered.
///
/// The block is the body of a function that returns `Result<_, Error>`: `?` and `return` end the block, not its caller.
/// It may run more than once, so it must not leave anything outside the transaction half done. On success this wakes
/// the sequencer, because new rows wait for numbers. A refusal is returned only after the data on which it rests are
/// visible to all.
macro_rules! transact {
    ($app:expr, $tx:ident => $body:block) => {{
        let app: &$crate::App = &$app;
        let mut attempt = 0;
        loop {
            let result = $crate::transact::typed(async {
                let mut $tx = app.store.begin().await?;
                match $crate::transact::typed(async $body).await {
                    Ok(value) => {
                        $tx.commit().await?;
                        Ok(value)
                    }
                    Err(error) => {
                        $tx.withdraw().await?;
                        Err(error)
                    }
                }
            })
            .await;
            match result {
                Err($crate::Error::Store(error)) if app.store.should_retry(&error, attempt).await => attempt += 1,
                Ok(value) => {
                    app.written.notify_one();
                    break Ok(value);
                }
                Err(error) => break Err(error),
            }
        }
    }};
}

pub(crate) use transact;

/// Tells the compiler the error type of the block's `?`.
pub(crate) fn typed<T, F: Future<Output = Result<T>>>(block: F) -> F {
    block
}

//! One way to run a transaction.

use crate::error::Result;

/// Runs a block inside a transaction and commits it; tries again, from the start, when another came between.
///
/// The block is the body of a function that returns `Result<_, Error>`: `?` and `return` end the block, not its
/// caller. It may run more than once, so nothing outside the transaction may be left half done by it. On success the
/// sequencer's bell is rung: new rows wait for numbers. A refusal is told only once what it rests on is there for all
/// to see.
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

/// Tells the compiler what kind of error the block's `?` leads to.
pub(crate) fn typed<T, F: Future<Output = Result<T>>>(block: F) -> F {
    block
}

//! Several futures of one thread, each with references to what surrounds it.

use std::future::Future;
use std::pin::Pin;
use std::task::Poll;

/// Drives all of them until all have ended; results in the order of the futures.
pub async fn all<'a, T>(futures: Vec<Pin<Box<dyn Future<Output = T> + 'a>>>) -> Vec<T> {
    let mut open: Vec<_> = futures.into_iter().map(Some).collect();
    let mut results: Vec<Option<T>> = open.iter().map(|_| None).collect();
    std::future::poll_fn(move |context| {
        let mut waiting = false;
        for (future, result) in open.iter_mut().zip(&mut results) {
            let Some(running) = future else { continue };
            match running.as_mut().poll(context) {
                Poll::Ready(value) => {
                    *result = Some(value);
                    *future = None;
                }
                Poll::Pending => waiting = true,
            }
        }
        match waiting {
            true => Poll::Pending,
            false => Poll::Ready(results.drain(..).flatten().collect()),
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::time::Duration;

    #[test]
    fn they_run_side_by_side_and_results_keep_their_order() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        let log = RefCell::new(Vec::new());
        let log = &log;
        let wait = |name: usize, ms: u64| -> Pin<Box<dyn Future<Output = usize> + '_>> {
            Box::pin(async move {
                log.borrow_mut().push(format!("{name} begins"));
                tokio::time::sleep(Duration::from_millis(ms)).await;
                name
            })
        };
        let results = runtime.block_on(all(vec![wait(0, 20), wait(1, 1), wait(2, 5)]));
        assert_eq!(results, [0, 1, 2]);
        assert_eq!(*log.borrow(), ["0 begins", "1 begins", "2 begins"]);
        let none: Vec<u8> = runtime.block_on(all(Vec::new()));
        assert!(none.is_empty());
    }
}

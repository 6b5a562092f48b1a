//! Lists that come in pages, read as far as someone wants to see them.

use berth_api::Page;
use berth_api::client::{Error, all_pages};
use berth_api::page::{Cursor, Limit, PageQuery};

/// Reads a list that is short by nature, such as the members of a site, to its end.
pub async fn whole<T>(
    mut fetch: impl AsyncFnMut(PageQuery) -> Result<Page<T>, Error>,
) -> Result<Page<T>, Error> {
    let limit = Limit::LARGEST;
    let items = all_pages(async |cursor| fetch(PageQuery { limit, cursor }).await).await?;
    Ok(Page::whole(items))
}

/// How much of a list without a natural end is read.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct Length {
    /// List at most this many
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: u64,
    /// List everything, however much that is
    #[arg(long, conflicts_with = "limit")]
    pub all: bool,
}

impl Length {
    /// Reads page by page until there are enough. What `next` says is where the list goes on.
    pub async fn read<T>(
        self,
        mut fetch: impl AsyncFnMut(Limit, Option<Cursor>) -> Result<Page<T>, Error>,
    ) -> Result<Page<T>, Error> {
        let mut wanted = if self.all { u64::MAX } else { self.limit };
        let mut items = Vec::new();
        let mut next = None;
        loop {
            let size = u16::try_from(wanted).unwrap_or(u16::MAX).min(Limit::MAX);
            let limit = Limit::try_from(size).unwrap_or(Limit::LARGEST);
            let page = fetch(limit, next).await?;
            wanted = wanted.saturating_sub(page.items.len() as u64);
            items.extend(page.items);
            next = page.next;
            if next.is_none() || wanted == 0 {
                return Ok(Page { items, next });
            }
        }
    }

    /// What to tell a person whose list was cut.
    pub fn cut<T>(self, page: &Page<T>) -> Option<&'static str> {
        page.next
            .as_ref()
            .map(|_| "There are more; read on with --limit N or --all.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list of ten, in pages of at most four.
    async fn read(length: Length) -> Page<u64> {
        length
            .read(async |limit, cursor| {
                let first = match &cursor {
                    Some(cursor) => cursor.place().unwrap().parse::<u64>().unwrap() + 1,
                    None => 0,
                };
                let last = (first + u64::from(limit.get().min(4))).min(10);
                let items: Vec<u64> = (first..last).collect();
                let next = (last < 10).then(|| Cursor::after(&(last - 1).to_string()));
                Ok(Page { items, next })
            })
            .await
            .unwrap()
    }

    #[tokio::test]
    async fn a_list_is_read_as_far_as_wanted() {
        let some = Length {
            limit: 6,
            all: false,
        };
        let page = read(some).await;
        assert_eq!(page.items, [0, 1, 2, 3, 4, 5]);
        assert!(some.cut(&page).is_some());
        let all = Length {
            limit: 100,
            all: true,
        };
        let page = read(all).await;
        assert_eq!(page.items.len(), 10);
        assert!(all.cut(&page).is_none());
    }
}

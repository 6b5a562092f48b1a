//! When what waits is expected to begin.

use berth_store::leases::Lease;

use super::plan::Plan;
use crate::App;
use crate::error::Result;

impl App {
    pub(super) async fn note_forecasts(&self, _lease: &Lease, _plan: &mut Plan) -> Result<()> {
        Ok(())
    }
}

//! Counters for whoever watches the server, in the text that Prometheus reads.
//!
//! Labels are route templates, methods and statuses: a bounded set. No label ever carries a name or an id.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use berth_app::queue::QueueFigures;
use berth_proxy::Activity;
use http::{Method, StatusCode};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: Family<Request, Counter>,
    durations: Family<Route, Histogram>,
    pub in_flight: Gauge,
    pub connections: Gauge,
    bookings: Family<Booking, Counter>,
    pub listeners: Gauge,
    sequencer_lag: Gauge<f64, AtomicU64>,
    queue: Queue,
    sessions: Sessions,
}

/// What is open in sessions.
#[derive(Debug, Default)]
struct Sessions {
    routes: Gauge,
    open: Gauge,
    sockets: Gauge,
}

impl Sessions {
    fn register(&self, registry: &mut Registry) {
        let sessions = registry.sub_registry_with_prefix("sessions");
        for (name, help, gauge) in [
            ("routes", "Sessions that let visitors in", &self.routes),
            ("open", "Requests and sockets open in sessions", &self.open),
            ("sockets", "The sockets among them", &self.sockets),
        ] {
            sessions.register(name, help, gauge.clone());
        }
    }
}

/// How the queues of all sites are doing.
#[derive(Debug, Default)]
struct Queue {
    waiting: Gauge,
    running: Gauge,
    forecasts: Gauge,
    bias: Gauge<f64, AtomicU64>,
    median_error: Gauge<f64, AtomicU64>,
}

impl Queue {
    fn register(&self, registry: &mut Registry) {
        let queue = registry.sub_registry_with_prefix("queue");
        queue.register(
            "workloads_waiting",
            "Workloads of which nothing runs",
            self.waiting.clone(),
        );
        queue.register("runs", "Tasks of workloads that run", self.running.clone());
        queue.register(
            "forecasts_scored",
            "Forecast starts of the last week that came",
            self.forecasts.clone(),
        );
        queue.register_with_unit(
            "forecast_bias",
            "The mean of how much later work began than was forecast",
            Unit::Seconds,
            self.bias.clone(),
        );
        queue.register_with_unit(
            "forecast_median_error",
            "Half of all forecasts were no farther off than this",
            Unit::Seconds,
            self.median_error.clone(),
        );
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request {
    route: String,
    method: &'static str,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Route {
    route: String,
    method: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Booking {
    outcome: &'static str,
}

/// What became of a request for a booking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Accepted,
    Refused,
}

impl Metrics {
    pub fn new(store: &'static str) -> Self {
        let mut registry = Registry::with_prefix("berth");
        let metrics = Self {
            requests: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(DURATIONS_S)),
            in_flight: Gauge::default(),
            connections: Gauge::default(),
            bookings: Family::default(),
            listeners: Gauge::default(),
            sequencer_lag: Gauge::default(),
            queue: Queue::default(),
            sessions: Sessions::default(),
            registry: Registry::default(),
        };
        let about = Info::new([("version", env!("CARGO_PKG_VERSION")), ("store", store)]);
        registry.register("server", "This server", about);
        registry.register(
            "http_requests",
            "Requests answered",
            metrics.requests.clone(),
        );
        registry.register_with_unit(
            "http_request_duration",
            "Time until the head of the answer",
            Unit::Seconds,
            metrics.durations.clone(),
        );
        registry.register(
            "http_requests_in_flight",
            "Requests being answered",
            metrics.in_flight.clone(),
        );
        registry.register(
            "http_connections",
            "Open connections",
            metrics.connections.clone(),
        );
        registry.register(
            "bookings",
            "Reservations asked for, by outcome",
            metrics.bookings.clone(),
        );
        registry.register(
            "event_listeners",
            "Open streams of events",
            metrics.listeners.clone(),
        );
        registry.register_with_unit(
            "sequencer_lag",
            "How long the oldest row has waited for its number",
            Unit::Seconds,
            metrics.sequencer_lag.clone(),
        );
        metrics.queue.register(&mut registry);
        metrics.sessions.register(&mut registry);
        Self {
            registry,
            ..metrics
        }
    }

    /// Counts an answered request. `route` is the template that matched; what matched none shares one label.
    pub fn count(&self, route: Option<&str>, method: &Method, status: StatusCode, took: Duration) {
        let route = route.unwrap_or("none").to_owned();
        let method = known(method);
        let request = Request {
            route: route.clone(),
            method,
            status: status.as_u16(),
        };
        self.requests.get_or_create(&request).inc();
        let durations = self.durations.get_or_create(&Route { route, method });
        durations.observe(took.as_secs_f64());
    }

    pub fn count_booking(&self, outcome: Outcome) {
        let outcome = match outcome {
            Outcome::Accepted => "accepted",
            Outcome::Refused => "refused",
        };
        self.bookings.get_or_create(&Booking { outcome }).inc();
    }

    pub fn set_sequencer_lag(&self, lag: Duration) {
        self.sequencer_lag.set(lag.as_secs_f64());
    }

    pub fn set_queue(&self, figures: &QueueFigures) {
        let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        self.queue.waiting.set(count(figures.waiting));
        self.queue.running.set(count(figures.running));
        if let Some(score) = figures.forecasts {
            self.queue.forecasts.set(count(score.count as u64));
            self.queue.bias.set(score.bias as f64 / 1e6);
            self.queue.median_error.set(score.median_error as f64 / 1e6);
        }
    }

    pub fn set_sessions(&self, activities: impl Iterator<Item = Activity>) {
        let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let (mut routes, mut open, mut sockets) = (0, 0, 0);
        for activity in activities {
            routes += 1;
            open += activity.open;
            sockets += activity.sockets;
        }
        self.sessions.routes.set(count(routes));
        self.sessions.open.set(count(open));
        self.sessions.sockets.set(count(sockets));
    }

    /// Everything, as Prometheus reads it.
    pub fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

/// From a millisecond to ten seconds, twice to two and a half times as long each.
const DURATIONS_S: [f64; 13] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

/// Anyone can invent a method; only those that routes use are worth a label.
fn known(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}

/// Counts something as long as it is there.
#[derive(Debug)]
pub struct Counted(Gauge);

impl Counted {
    pub fn on(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_is_told_without_names() {
        let metrics = Metrics::new("sqlite");
        let took = Duration::from_millis(3);
        let odd = Method::from_bytes(b"CANARY").unwrap();
        metrics.count(
            Some("/api/v1/sites/{site}"),
            &Method::GET,
            StatusCode::OK,
            took,
        );
        metrics.count(None, &odd, StatusCode::NOT_FOUND, took);
        metrics.count_booking(Outcome::Refused);
        let guard = Counted::on(&metrics.listeners);
        let text = metrics.text().unwrap();
        for line in [
            r#"berth_http_requests_total{route="/api/v1/sites/{site}",method="GET",status="200"} 1"#,
            r#"berth_http_requests_total{route="none",method="other",status="404"} 1"#,
            r#"berth_bookings_total{outcome="refused"} 1"#,
            "berth_event_listeners 1",
        ] {
            assert!(text.contains(line), "{line} is missing in:\n{text}");
        }
        assert!(text.contains(r#"store="sqlite""#));
        assert!(!text.contains("CANARY"));
        drop(guard);
        assert!(metrics.text().unwrap().contains("berth_event_listeners 0"));
    }
}

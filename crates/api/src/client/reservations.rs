//! Reservations, from making one to its history.

use berth_model::ReservationId;
use reqwest::Method;

use super::{Client, Created, Error};
use crate::desk::NewAnyReservation;
use crate::headers::{IdempotencyKey, IfMatch};
use crate::members::Reason;
use crate::page::{DryRunQuery, Page, PageQuery};
use crate::paths;
use crate::reference::SiteReference;
use crate::reservations::{
    Extension, HandOver, HistoryEntry, MyReservationQuery, NewReservation, Rejection, Reservation,
    ReservationPatch, ReservationPreview, ReservationQuery,
};

impl Client {
    pub async fn reservations(
        &self,
        site: &SiteReference,
        query: &ReservationQuery,
    ) -> Result<Page<Reservation>, Error> {
        let call = self.call(Method::GET, &paths::reservations(site));
        call.query(query).json().await
    }

    /// One's own, in all sites.
    pub async fn my_reservations(
        &self,
        query: &MyReservationQuery,
    ) -> Result<Page<Reservation>, Error> {
        let call = self.call(Method::GET, paths::MY_RESERVATIONS);
        call.query(query).json().await
    }

    pub async fn book(
        &self,
        site: &SiteReference,
        new: &NewReservation,
        key: Option<&IdempotencyKey>,
    ) -> Result<Created<Reservation>, Error> {
        let call = self.call(Method::POST, &paths::reservations(site));
        call.key(key).body(new).created().await
    }

    /// Books any of a kind.
    pub async fn book_any(
        &self,
        site: &SiteReference,
        new: &NewAnyReservation,
        key: Option<&IdempotencyKey>,
    ) -> Result<Created<Reservation>, Error> {
        let call = self.call(Method::POST, &paths::reservations_any(site));
        call.key(key).body(new).created().await
    }

    pub async fn preview_any(
        &self,
        site: &SiteReference,
        new: &NewAnyReservation,
    ) -> Result<ReservationPreview, Error> {
        let call = self.call(Method::POST, &paths::reservations_any(site));
        let call = call.query(&DryRunQuery { dry_run: true });
        call.body(new).json().await
    }

    /// Whether the booking would be accepted.
    pub async fn preview_booking(
        &self,
        site: &SiteReference,
        new: &NewReservation,
    ) -> Result<ReservationPreview, Error> {
        let call = self.call(Method::POST, &paths::reservations(site));
        let call = call.query(&DryRunQuery { dry_run: true });
        call.body(new).json().await
    }

    pub async fn reservation(
        &self,
        site: &SiteReference,
        reservation: ReservationId,
    ) -> Result<Reservation, Error> {
        let path = paths::reservation(site, &reservation);
        self.call(Method::GET, &path).json().await
    }

    pub async fn change_reservation(
        &self,
        site: &SiteReference,
        reservation: ReservationId,
        version: IfMatch,
        patch: &ReservationPatch,
    ) -> Result<Reservation, Error> {
        let call = self.call(Method::PATCH, &paths::reservation(site, &reservation));
        call.if_match(version).body(patch).json().await
    }

    pub async fn extend_reservation(
        &self,
        site: &SiteReference,
        reservation: ReservationId,
        extension: Extension,
    ) -> Result<Reservation, Error> {
        let path = paths::reservation_extend(site, &reservation);
        self.call(Method::POST, &path).body(&extension).json().await
    }

    pub async fn cancel_reservation(
        &self,
        site: &SiteReference,
        reservation: ReservationId,
        reason: &Reason,
    ) -> Result<Reservation, Error> {
        let path = paths::reservation_cancel(site, &reservation);
        self.call(Method::POST, &path).body(reason).json().await
    }

    pub async fn take_reservation(
        &self,
        site: &SiteReference,
        reservation: ReservationId,
    ) -> Result<Reservation, Error> {
        let path = paths::reservation_take(site, &reservation);
        self.call(Method::POST, &path).json().await
    }

    pub async fn check_in(
        &self,
        site: &SiteReference,
        reservation: ReservationId,
    ) -> Result<Reservation, Error> {
        let path = paths::reservation_check_in(site, &reservation);
        self.call(Method::POST, &path).json().await
    }

    pub async fn hand_over(
        &self,
        site: &SiteReference,
        reservation: ReservationId,
        hand_over: &HandOver,
    ) -> Result<Reservation, Error> {
        let path = paths::reservation_hand_over(site, &reservation);
        self.call(Method::POST, &path).body(hand_over).json().await
    }

    pub async fn approve_reservation(
        &self,
        site: &SiteReference,
        reservation: ReservationId,
    ) -> Result<Reservation, Error> {
        let path = paths::reservation_approve(site, &reservation);
        self.call(Method::POST, &path).json().await
    }

    pub async fn reject_reservation(
        &self,
        site: &SiteReference,
        reservation: ReservationId,
        rejection: &Rejection,
    ) -> Result<Reservation, Error> {
        let path = paths::reservation_reject(site, &reservation);
        self.call(Method::POST, &path).body(rejection).json().await
    }

    pub async fn reservation_history(
        &self,
        site: &SiteReference,
        reservation: ReservationId,
        query: &PageQuery,
    ) -> Result<Page<HistoryEntry>, Error> {
        let call = self.call(Method::GET, &paths::reservation_history(site, &reservation));
        call.query(query).json().await
    }
}

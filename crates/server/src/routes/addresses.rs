//! What the paths name: each address once, as it is read and as it is documented.
//!
//! The fields are called like the places in the templates of `berth_api::paths`; that is how they find each other.

use berth_api::policies::GlobalScope;
use berth_api::reference::{
    ClosureReference, EnvironmentReference, PersonReference, ProjectReference, ResourceReference,
    SessionReference, SiteReference, TypeReference, WorkloadReference,
};
use berth_model::{
    FeedId, GrantId, JoinRequestId, Name, ReservationId, SeriesId, TokenId, WindowId,
};
use serde::Deserialize;
use utoipa::IntoParams;

macro_rules! addresses {
    ($($(#[$doc:meta])* $name:ident { $($(#[doc = $about:literal])+ $field:ident: $type:ty),+ $(,)? })+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Deserialize, IntoParams)]
        #[into_params(parameter_in = Path)]
        pub struct $name {
            $($(#[doc = $about])+ #[param(inline)] pub $field: $type,)+
        }
    )+};
}

addresses! {
    PersonAt {
        /// The person's login name or id.
        person: PersonReference,
    }
    MyTokenAt {
        /// The token's id.
        token: TokenId,
    }
    MyFeedAt {
        /// The feed's id.
        feed: FeedId,
    }
    TokenAt {
        /// The person's login name or id.
        person: PersonReference,
        /// The token's id.
        token: TokenId,
    }
    SiteAt {
        /// The site's name or id.
        site: SiteReference,
    }
    JoinRequestAt {
        /// The site's name or id.
        site: SiteReference,
        /// The request's id.
        request: JoinRequestId,
    }
    MemberAt {
        /// The site's name or id.
        site: SiteReference,
        /// The person's login name or id.
        person: PersonReference,
    }
    ProjectAt {
        /// The site's name or id.
        site: SiteReference,
        /// The project's name or id.
        project: ProjectReference,
    }
    ProjectMemberAt {
        /// The site's name or id.
        site: SiteReference,
        /// The project's name or id.
        project: ProjectReference,
        /// The person's login name or id.
        person: PersonReference,
    }
    TypeAt {
        /// The site's name or id.
        site: SiteReference,
        /// The type's name or id.
        kind: TypeReference,
    }
    ResourceAt {
        /// The site's name or id.
        site: SiteReference,
        /// The resource's name or id.
        resource: ResourceReference,
    }
    GlobalPolicyAt {
        /// `ceilings` or `defaults`.
        scope: GlobalScope,
    }
    WindowAt {
        /// The site's name or id.
        site: SiteReference,
        /// The window's id.
        window: WindowId,
    }
    WorkloadAt {
        /// The site's name or id.
        site: SiteReference,
        /// The workload's number in its site, or its id.
        workload: WorkloadReference,
    }
    SessionAt {
        /// The site's name or id.
        site: SiteReference,
        /// The name of a session of one's own, or any session's id.
        session: SessionReference,
    }
    SessionProfileAt {
        /// The site's name or id.
        site: SiteReference,
        /// The profile's name.
        profile: Name,
    }
    GrantAt {
        /// The site's name or id.
        site: SiteReference,
        /// The grant's id.
        grant: GrantId,
    }
    SeriesAt {
        /// The site's name or id.
        site: SiteReference,
        /// The series' id.
        series: SeriesId,
    }
    ClosureAt {
        /// The site's name or id.
        site: SiteReference,
        /// The calendar's name or id.
        closure: ClosureReference,
    }
    EnvironmentAt {
        /// The site's name or id.
        site: SiteReference,
        /// The environment as people write it (`torch`, `torch@2`, `~ada/torch`), or its id.
        environment: EnvironmentReference,
    }
    ReservationAt {
        /// The site's name or id.
        site: SiteReference,
        /// The reservation's id.
        reservation: ReservationId,
    }
}

//! Schemas of model types that have none of their own, for `#[schema(value_type = …)]`.
//!
//! These are never values; they only say in the OpenAPI document what the model's parser enforces.

use berth_model::declared::{MEMBERS_MAX, POLICIES_MAX, PROJECTS_MAX, RESOURCES_MAX, TYPES_MAX};
use berth_model::inventory;
use berth_model::parameter::VALUE_MAX_CHARS;
use berth_model::policy::{Part, Policy};
use berth_model::site::OutsiderView;
use berth_model::{LoginName, Name, Text};
use utoipa::openapi::schema::{AdditionalProperties, ArrayBuilder, KnownFormat, SchemaFormat};
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, Type};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

use crate::attributes::AttributeSet;

/// No control characters: they cannot be read, and PostgreSQL cannot store a zero.
pub(crate) const NO_CONTROLS: &str = r"^[^\u0000-\u001f\u007f-\u009f]*$";

pub(crate) fn text(min: usize, max: usize) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(min))
        .max_length(Some(max))
}

/// A map from names to values.
pub(crate) fn map(entries_max: usize, value: impl Into<Schema>) -> ObjectBuilder {
    of_names(entries_max, RefOr::T(value.into()))
}

fn of_names(entries_max: usize, value: RefOr<Schema>) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .property_names(plain(Name::schema()))
        .max_properties(Some(entries_max))
        .additional_properties(Some(AdditionalProperties::RefOr(value)))
}

pub(crate) fn one_of(kinds: impl IntoIterator<Item = Schema>) -> Schema {
    kinds
        .into_iter()
        .fold(OneOfBuilder::new(), |one_of, kind| one_of.item(kind))
        .into()
}

/// An object that takes these fields and no others.
pub(crate) fn object<const N: usize>(fields: [(&str, RefOr<Schema>); N]) -> ObjectBuilder {
    fields
        .into_iter()
        .fold(ObjectBuilder::new(), |object, (name, schema)| {
            object.property(name, schema)
        })
        .schema_type(Type::Object)
        .additional_properties(Some(AdditionalProperties::FreeForm(false)))
}

fn plain(schema: RefOr<Schema>) -> Option<Schema> {
    match schema {
        RefOr::T(schema) => Some(schema),
        RefOr::Ref(_) => None,
    }
}

pub(crate) fn of(kind: Type) -> Schema {
    ObjectBuilder::new().schema_type(kind).into()
}

/// An IANA time zone's name. Which ones exist is not for a schema to say.
#[derive(Debug)]
pub struct TimeZone;

impl PartialSchema for TimeZone {
    fn schema() -> RefOr<Schema> {
        text(1, 64)
            .pattern(Some("^[A-Za-z0-9_+/-]{1,64}$"))
            .description(Some("The name of an IANA time zone."))
            .examples(["Europe/Rome", "UTC"])
            .into()
    }
}
impl ToSchema for TimeZone {}

#[derive(Debug)]
pub struct Colour;

impl PartialSchema for Colour {
    fn schema() -> RefOr<Schema> {
        text(7, 7)
            .pattern(Some("^#[0-9A-Fa-f]{6}$"))
            .examples(["#1f77b4"])
            .into()
    }
}
impl ToSchema for Colour {}

/// Answers to booking forms: by the type's name, then by the parameter's key.
#[derive(Debug)]
pub struct Parameters;

impl Parameters {
    /// The most types one reservation answers for, and the most answers for each.
    pub(crate) const ENTRIES_MAX: usize = 100;
}

impl PartialSchema for Parameters {
    fn schema() -> RefOr<Schema> {
        let answer = [
            text(0, VALUE_MAX_CHARS)
                .pattern(Some(r"^[^\u0000]*$"))
                .into(),
            of(Type::Number),
            of(Type::Boolean),
            of(Type::Null),
        ];
        map(Self::ENTRIES_MAX, map(Self::ENTRIES_MAX, one_of(answer)))
            .examples([serde_json::json!({"gpu-server": {"image": "ubuntu-24.04"}})])
            .into()
    }
}
impl ToSchema for Parameters {}

/// One question of a booking form. The model derives a schema of its own, but a derived one can neither
/// close the kinds to unknown fields nor say how many options there may be.
#[derive(Debug)]
pub struct Parameter;

const OPTIONS_MAX: usize = 200;

impl PartialSchema for Parameter {
    fn schema() -> RefOr<Schema> {
        object([
            ("key", refer::<Name>()),
            ("label", refer::<Text>()),
            ("help", optional(refer::<Text>())),
            ("required", of(Type::Boolean).into()),
            ("kind", one_of(kinds()).into()),
        ])
        .required("key")
        .required("label")
        .required("kind")
        .examples([serde_json::json!({
            "key": "image", "label": "Image", "required": true, "kind": {"text": {"max_length": 80}}
        })])
        .into()
    }
}

impl ToSchema for Parameter {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((Name::name().into_owned(), Name::schema()));
        schemas.push((Text::name().into_owned(), Text::schema()));
    }
}

/// A site as a file declares it. Sections that are absent are left alone.
#[derive(Debug)]
pub struct Document;

impl PartialSchema for Document {
    fn schema() -> RefOr<Schema> {
        let version = ObjectBuilder::new()
            .schema_type(Type::Integer)
            .minimum(Some(1))
            .maximum(Some(1));
        let site = object([
            ("name", optional(refer::<Name>())),
            ("title", refer::<Text>()),
            ("time_zone", TimeZone::schema()),
            ("outsiders_see", OutsiderView::schema()),
            ("accent", optional(Colour::schema())),
        ])
        .required("title")
        .required("time_zone")
        .required("outsiders_see");
        let form = ArrayBuilder::new()
            .items(refer::<Parameter>())
            .max_items(Some(50));
        let kind = object([
            ("title", refer::<Text>()),
            ("colour", Colour::schema()),
            ("needs_approval", of(Type::Boolean).into()),
            ("form", form.into()),
        ])
        .required("title");
        let project = object([
            ("title", refer::<Text>()),
            (
                "members",
                ArrayBuilder::new()
                    .items(LoginName::schema())
                    .max_items(Some(MEMBERS_MAX))
                    .into(),
            ),
        ])
        .required("title");
        let policy = object([("for", Part::schema()), ("asks", Policy::schema())]).required("asks");
        let policies = ArrayBuilder::new()
            .items(policy)
            .max_items(Some(POLICIES_MAX));
        object([
            ("version", version.into()),
            ("site", optional(site.into())),
            ("types", optional(map(TYPES_MAX, kind).into())),
            (
                "resources",
                optional(of_names(RESOURCES_MAX, refer::<DeclaredResource>()).into()),
            ),
            ("projects", optional(map(PROJECTS_MAX, project).into())),
            ("policies", optional(policies.into())),
        ])
        .required("version")
        .examples([serde_json::json!({
            "version": 1,
            "types": {"gpu-server": {"title": "GPU server", "colour": "#1f77b4"}},
            "resources": {"gpu-01": {"type": "gpu-server", "attributes": {"gpus": 8}}},
        })])
        .into()
    }
}

impl ToSchema for Document {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        Parameter::schemas(schemas);
        inventory::Capacity::schemas(schemas);
        inventory::Facts::schemas(schemas);
        Part::schemas(schemas);
        Policy::schemas(schemas);
        schemas.push((Parameter::name().into_owned(), Parameter::schema()));
        let resource = DeclaredResource::name().into_owned();
        schemas.push((resource, DeclaredResource::schema()));
    }
}

/// A resource as a file declares it, with those below it.
#[derive(Debug)]
pub struct DeclaredResource;

impl PartialSchema for DeclaredResource {
    fn schema() -> RefOr<Schema> {
        object([
            ("type", refer::<Name>()),
            ("title", optional(refer::<Text>())),
            ("capacity", optional(inventory::Capacity::schema())),
            ("attributes", AttributeSet::schema()),
            ("facts", inventory::Facts::schema()),
            (
                "children",
                of_names(RESOURCES_MAX, refer::<DeclaredResource>()).into(),
            ),
        ])
        .required("type")
        .into()
    }
}
impl ToSchema for DeclaredResource {}

/// Each kind is an object whose single field names it.
fn kinds() -> impl Iterator<Item = Schema> {
    let number = || optional(of(Type::Number).into());
    let date = || {
        let date = ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Date)));
        optional(date.into())
    };
    let length = ObjectBuilder::new()
        .schema_type(Type::Integer)
        .minimum(Some(0))
        .maximum(Some(VALUE_MAX_CHARS as i64));
    let options = ArrayBuilder::new()
        .items(refer::<Text>())
        .min_items(Some(1))
        .max_items(Some(OPTIONS_MAX));
    [
        ("text", object([("max_length", optional(length.into()))])),
        (
            "number",
            object([
                ("min", number()),
                ("max", number()),
                ("integer", of(Type::Boolean).into()),
            ]),
        ),
        (
            "choice",
            object([("options", options.into())]).required("options"),
        ),
        ("boolean", object([])),
        ("date", object([("min", date()), ("max", date())])),
        ("secret", object([])),
    ]
    .into_iter()
    .map(|(name, fields)| object([(name, fields.into())]).required(name).into())
}

fn refer<T: ToSchema>() -> RefOr<Schema> {
    Ref::from_schema_name(T::name()).into()
}

fn optional(schema: RefOr<Schema>) -> RefOr<Schema> {
    OneOfBuilder::new().item(schema).item(of(Type::Null)).into()
}

//! `berth project`: groups of members inside a site.

use berth_api::projects::{NewProject, Project as ProjectObject, ProjectPatch};
use berth_api::reference::{PersonReference, ProjectReference};
use berth_model::{Name, Text};
use clap::Subcommand;

use super::{Once, Version};
use crate::arguments::Placed;
use crate::context::Context;
use crate::details::Details;
use crate::pages::whole;
use crate::show;
use crate::table::{Column, Table};

#[derive(Debug, Subcommand)]
pub enum Project {
    /// List the projects of the site
    List,
    /// Show one project
    Show {
        /// The project, by name or id
        project: Placed<ProjectReference>,
    },
    /// Make a project
    Create {
        /// What people type: lower-case letters, digits, `-`, `_` and `.`
        name: Placed<Name>,
        /// What people read
        #[arg(long)]
        title: Text,
        #[command(flatten)]
        once: Once,
    },
    /// Change a project
    Edit {
        /// The project, by name or id
        project: Placed<ProjectReference>,
        /// A new name
        #[arg(long)]
        name: Option<Name>,
        /// What people read
        #[arg(long)]
        title: Option<Text>,
        #[command(flatten)]
        version: Version,
    },
    /// Remove a project
    Remove {
        /// The project, by name or id
        project: Placed<ProjectReference>,
    },
    /// List who is in a project
    Members {
        /// The project, by name or id
        project: Placed<ProjectReference>,
    },
    /// Put a member of the site into a project
    AddMember {
        /// The project, by name or id
        project: Placed<ProjectReference>,
        /// The person's login
        person: PersonReference,
    },
    /// Take a person out of a project
    RemoveMember {
        /// The project, by name or id
        project: Placed<ProjectReference>,
        /// The person's login
        person: PersonReference,
    },
}

pub async fn run(command: Project, context: &Context) -> anyhow::Result<()> {
    let (client, out) = (&context.client, &context.out);
    match command {
        Project::List => {
            let site = context.site()?;
            let projects = whole(async |query| client.projects(site, &query).await).await?;
            out.show(&projects, |screen| {
                let columns = [Column::left("NAME"), Column::left("TITLE").shrinks(1)];
                let mut table = Table::new(columns, "This site has no projects.");
                for project in &projects.items {
                    table.row([project.name.to_string(), project.title.to_string()]);
                }
                table.render(screen)
            })
        }
        Project::Show { project } => {
            let site = context.site_of(&project)?;
            let project = client.project(&site, &project.it).await?;
            out.show(&project, |screen| details(&project, context).render(screen))
        }
        Project::Members { project } => members(&project, context).await,
        Project::Create { name, title, once } => {
            let site = context.site_of(&name)?;
            let new = NewProject {
                name: name.it,
                title,
            };
            let made = client.create_project(&site, &new, once.key()).await?.object;
            out.show(&made, |_| format!("Made the project {}.\n", made.name))?;
            out.note(format!(
                "Put people in with: berth project add-member {} LOGIN",
                made.name
            ));
            Ok(())
        }
        Project::Edit {
            project,
            name,
            title,
            version,
        } => {
            let site = context.site_of(&project)?;
            let patch = ProjectPatch { name, title };
            let project = client
                .change_project(&site, &project.it, version.if_match(), &patch)
                .await?;
            out.show(&project, |_| {
                format!("Changed the project {}.\n", project.name)
            })
        }
        Project::Remove { project } => {
            client
                .remove_project(&context.site_of(&project)?, &project.it)
                .await?;
            out.say(&format!("Removed the project {}.\n", project.it))
        }
        Project::AddMember { project, person } => {
            let site = context.site_of(&project)?;
            let member = client
                .put_project_member(&site, &project.it, &person)
                .await?;
            out.show(&member, |_| {
                format!(
                    "{} is now in {}.\n",
                    show::person(&member.person),
                    project.it
                )
            })
        }
        Project::RemoveMember { project, person } => {
            let site = context.site_of(&project)?;
            client
                .remove_project_member(&site, &project.it, &person)
                .await?;
            out.say(&format!("{person} is no longer in {}.\n", project.it))
        }
    }
}

async fn members(named: &Placed<ProjectReference>, context: &Context) -> anyhow::Result<()> {
    let client = &context.client;
    let site = context.site_of(named)?;
    let members =
        whole(async |query| client.project_members(&site, &named.it, &query).await).await?;
    context.out.show(&members, |screen| {
        let columns = [
            Column::left("LOGIN"),
            Column::left("NAME").shrinks(1),
            Column::left("SINCE"),
        ];
        let mut table = Table::new(columns, "Nobody is in this project.");
        for member in &members.items {
            table.row([
                member.person.login.clone(),
                member.person.display_name.clone(),
                context.times.moment(member.since),
            ]);
        }
        context.times.render(&table, screen)
    })
}

fn details(project: &ProjectObject, context: &Context) -> Details {
    Details::default()
        .line("Name", &project.name)
        .line("Title", &project.title)
        .line("Site", &project.site.name)
        .line("Made", context.times.moment(project.created_at))
        .line("Id", project.id)
        .line("Version", project.version)
}

//! What happens in a repository, whoever causes it: a REST call, a GraphQL mutation, or a test that plays a person.

pub mod checks;
pub mod issues;
pub mod landing;
pub mod projects;
pub mod pulls;
pub mod refs;
pub mod reviews;

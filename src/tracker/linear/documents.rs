//! Linear's operations, typed against the part of its published schema that they use (`tests/contracts/linear.graphql`).

use graphql_client::GraphQLQuery;

/// A point in time as Linear writes it.
type DateTime = String;
type DateTimeOrDuration = String;

macro_rules! operations {
    ($file:tt: $($name:ident),+ $(,)?) => {
        $(
            #[derive(GraphQLQuery)]
            #[graphql(
                schema_path = "tests/contracts/linear.graphql",
                query_path = $file,
                response_derives = "Debug, Clone",
                variables_derives = "Debug, Clone, Default, Deserialize",
                skip_serializing_none
            )]
            pub struct $name;
        )+
    };
}

operations!("src/tracker/linear/issues.graphql": Issues);
operations!("src/tracker/linear/watch.graphql": Changes, Digests);
operations!("src/tracker/linear/reads.graphql": Viewer, People, Comments, Place, Home, Survey);
operations!("src/tracker/linear/writes.graphql": WriteComment, EditComment, ChangeIssue, MakeLabel, Attach, React, MakeIssue);

/// Declared separately, because its input contains an enum, which has no default.
#[derive(GraphQLQuery)]
#[graphql(
    schema_path = "tests/contracts/linear.graphql",
    query_path = "src/tracker/linear/writes.graphql",
    response_derives = "Debug, Clone",
    variables_derives = "Debug, Clone",
    skip_serializing_none
)]
pub struct Relate;

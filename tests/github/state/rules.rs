//! What a branch demands before something is merged into it: classic protection and rulesets.

/// One set of demands. Classic protection and a ruleset say the same things in different places.
#[derive(Clone, Debug, Default)]
pub struct Demands {
    pub checks: Vec<String>,
    /// The head must contain the base.
    pub up_to_date: bool,
    pub reviews: u64,
    pub dismiss_stale: bool,
    pub code_owners: bool,
    pub conversations_resolved: bool,
    pub signatures: bool,
    pub merge_queue: bool,
}

#[derive(Clone, Debug)]
pub struct Ruleset {
    pub id: u64,
    pub name: String,
    pub branch: String,
    pub demands: Demands,
}

#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Classic protection, by branch.
    pub protections: Vec<(String, Demands)>,
    pub rulesets: Vec<Ruleset>,
}

impl Rules {
    pub fn protection(&self, branch: &str) -> Option<&Demands> {
        self.protections.iter().find(|(name, _)| name == branch).map(|(_, demands)| demands)
    }

    pub fn rulesets_of(&self, branch: &str) -> impl Iterator<Item = &Ruleset> {
        self.rulesets.iter().filter(move |ruleset| ruleset.branch == branch)
    }

    /// Everything that holds for a branch, together.
    pub fn demands(&self, branch: &str) -> Demands {
        let mut sum = Demands::default();
        let sets = self.protection(branch).into_iter().chain(self.rulesets_of(branch).map(|ruleset| &ruleset.demands));
        for one in sets {
            sum.checks.extend(one.checks.iter().cloned());
            sum.up_to_date |= one.up_to_date;
            sum.reviews = sum.reviews.max(one.reviews);
            sum.dismiss_stale |= one.dismiss_stale;
            sum.code_owners |= one.code_owners;
            sum.conversations_resolved |= one.conversations_resolved;
            sum.signatures |= one.signatures;
            sum.merge_queue |= one.merge_queue;
        }
        sum
    }
}

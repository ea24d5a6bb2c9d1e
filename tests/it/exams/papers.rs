//! One test per check of an exam, for one candidate.

macro_rules! papers {
    ($candidate:ty, $exam:path; $($paper:ident: { $($check:ident),+ $(,)? })+) => {
        $($(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $check() {
                use $exam as exam;
                let candidate = <$candidate as exam::Candidate>::fresh().await;
                let outcome = exam::$paper::$check(&candidate).await;
                $crate::exams::mark(stringify!($check), <$candidate as exam::Candidate>::CANNOT, outcome);
            }
        )+)+

        #[test]
        fn every_declared_gap_is_a_check() {
            use $exam as exam;
            let checks = [$($(stringify!($check)),+),+];
            for (name, why) in <$candidate as exam::Candidate>::CANNOT {
                assert!(checks.contains(name), "`{name}` is not a check of this exam");
                assert!(!why.is_empty(), "`{name}` is a gap without a reason");
            }
        }
    };
}

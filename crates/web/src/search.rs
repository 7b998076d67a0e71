//! Search services as data: `specs/search/*.yaml` say how one is asked and how its answer reads.

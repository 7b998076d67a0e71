//! One contract for all backends, and what each of them must endure.
#![cfg(test)]

mod access;
mod chance;
mod contract;
mod conversations;
mod crash;
mod encryption;
mod expiry;
mod holdings;
#[cfg(unix)]
mod instances;
mod jobs;
mod keys;
mod make;
mod memory;
mod model;
#[cfg(unix)]
mod outages;
#[cfg(unix)]
mod postgres;
#[cfg(unix)]
mod proxy;
mod random_jobs;
#[cfg(unix)]
mod server;
mod sqlite;
mod statements;
mod trace_files;
mod trace_room;
mod traces;
mod turns;
mod usage;

use std::future::Future;
use std::pin::Pin;

use store::{Clock, Store};

type Case = fn(Store) -> Pin<Box<dyn Future<Output = ()>>>;

/// Every case of the contract, by name.
macro_rules! cases {
    ($($module:ident :: $name:ident),* $(,)?) => {
        const CASES: &[(&str, Case)] = &[$((stringify!($name), |store| Box::pin($module::$name(store)))),*];
    };
}

cases![
    contract::bytes_come_back_as_they_were,
    contract::a_chain_is_given_out_oldest_first,
    contract::what_is_read_needs_room,
    contract::a_page_ends_with_its_bytes,
    contract::forks_see_exactly_their_ancestors,
    contract::unknown_ids_are_not_found,
    contract::an_id_is_taken_once,
    contract::too_deep_is_refused,
    contract::a_deleted_ancestor_breaks_the_chain,
    contract::what_another_response_was_sent_survives_a_deletion,
    contract::resending_everything_adds_only_what_is_new,
    contract::an_item_spelled_anew_is_the_same_item,
    contract::settings_are_kept_once_and_given_back,
    contract::input_items_are_paged_both_ways,
    contract::items_are_found_by_their_id,
    contract::tenants_never_meet,
    contract::a_swept_ancestor_leaves_its_children_whole,
    contract::what_an_expired_ancestor_had_survives_the_deletion_of_one_that_resent_it,
    conversations::conversations_live_and_die,
    conversations::conversation_items_come_and_go,
    conversations::one_turn_at_a_time_in_a_conversation,
    contract::concurrent_continuations_fork,
    contract::odd_ids_are_only_odd,
    contract::a_turn_without_items_is_a_turn,
    turns::a_turn_is_begun_advanced_and_finished,
    turns::a_turn_ends_once,
    turns::what_is_not_finished_is_not_continued,
    turns::a_begun_turn_keeps_its_place_beside_others,
    turns::a_begun_turn_in_a_conversation_joins_it_at_its_end,
    turns::a_turn_that_fails_leaves_its_conversation_as_it_was,
    turns::a_begun_turn_can_be_deleted_and_swept,
    turns::statuses_go_one_way,
    turns::events_are_read_from_any_number_on,
    turns::events_go_on_where_the_log_ends,
    turns::events_go_with_their_turn,
    turns::events_of_many_writers_have_no_gap,
    jobs::a_job_is_begun_dispatched_and_finished,
    jobs::a_tenant_runs_and_queues_no_more_than_it_may,
    jobs::jobs_that_wait_are_claimed_oldest_first,
    jobs::a_heartbeat_lists_what_is_still_its_own,
    jobs::jobs_of_lost_workers_are_taken_over,
    jobs::an_end_without_a_claim_is_an_end,
    jobs::a_conversation_is_held_as_long_as_its_job,
    jobs::a_background_job_is_not_deleted_while_it_is_there,
    jobs::a_log_is_dropped_and_its_last_number_kept,
    jobs::notices_are_given_out_until_they_are_done,
    keys::a_key_is_one_requests,
    keys::a_key_is_free_when_its_worker_is_gone_or_its_time_is_over,
    keys::of_many_who_claim_a_key_one_gets_it,
    keys::a_response_is_stored_under_a_key_that_is_its_own,
    keys::a_key_is_not_given_back_while_its_response_is_there,
    keys::a_key_is_taken_over_or_answered,
    keys::a_key_that_is_used_up_stays_so,
    expiry::what_has_expired_is_not_there_on_any_road,
    expiry::what_was_there_when_a_turn_began_can_be_continued,
    access::api_keys_come_and_go,
    access::a_key_is_rotated_and_keeps_its_name,
    access::keys_of_a_name_are_revoked_together,
    access::none_outlives_its_name,
    access::tenants_have_terms,
    access::no_change_is_missed,
    usage::a_batch_counts_once,
    usage::usage_of_many_at_once_is_all_there,
    usage::usage_is_told_apart_as_asked,
    usage::what_was_spent_is_summed_since_an_hour,
    usage::no_sum_overflows,
    holdings::what_a_tenant_has_is_listed_and_given_out,
    holdings::an_erased_tenant_is_gone,
];

/// By a clock that never moves: a case that wants time to pass says so.
async fn run_all(store: &Store) {
    let store = store.clone().with_clock(Clock::new(|| 0));
    for (name, case) in CASES {
        println!("{name}");
        case(store.clone()).await;
    }
}

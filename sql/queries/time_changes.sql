-- Which phases became slower or faster, by how much, and from which step on?
-- test: count(*) >= 2 and bool_and(ratio >= 1.25 or ratio <= 0.8)
-- test: bool_and(shift_kind = 'from_start' and onset_step is null)
select
    pairs.migration,
    pairs.candidate_run_name as candidate,
    shifts.metric,
    shifts.shift_kind,
    shifts.ratio,
    shifts.onset_step,
    shifts.onset_step_low,
    shifts.onset_step_high,
    shifts.sentence
from mart_time_shift as shifts
inner join dim_migration as pairs on shifts.pair_id = pairs.pair_id
where pairs.pair_kind = 'migration'
order by pairs.migration asc, candidate asc, shifts.shift_kind asc, abs(ln(shifts.ratio)) desc

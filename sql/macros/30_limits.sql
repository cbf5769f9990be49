-- Limits that the tests and verdicts use. What they were measured against is in docs/statistics.md.
create or replace macro drift_q_limit() as 0.05;
create or replace macro decouple_p_limit() as 0.001;

-- Without replicates a statistic is divided by this much, on top of what its own autocorrelation asks for.
create or replace macro prior_inflation() as 3.0;

-- Autocorrelation alone multiplies the variance of a mean by this much.
create or replace macro ar_inflation(autocorrelation) as (1.0 + autocorrelation) / (1.0 - autocorrelation);

-- What a pair adds to the inflation of its replicates when it is more autocorrelated than they are: nothing within
-- two standard errors, beyond them gradually, lest chance costs power.
create or replace macro excess_inflation(own, known, n) as
ar_inflation(known + greatest(0.0, least(own - known, 2.0 * (own - known - 2.0 / sqrt(n))))) / ar_inflation(known);

-- Where the candidate's stack has no replicates, how its runs wander is taken from the baseline's, never for little.
create or replace macro one_sided_inflation(inflation) as greatest(inflation, 2.5);

-- With replicates it is divided by their mean statistic, or by what their autocorrelation asks for, whichever is more.
-- The largest statistic has a heavier tail than its mean tells, more so where values depend on the last one, and the
-- fewer the replicates the less is known of it. The constants were measured by simulation
-- (benchmarks/scoreboard.py).
create or replace macro inflation_of_replicates(mean_f, autocorrelation, degrees) as greatest(
    mean_f * (0.97 + 0.5 / degrees) * (1.0 + 1.6 * pow(autocorrelation, 3)),
    ar_inflation(autocorrelation),
    1.0
);

-- Runs that moved as one up to the split have no level of their own before it: where they part, they part for good, to
-- a level that the replicates can't foretell. Such a split needs twice the statistic. Left of it the
-- fit leaves less than a tenth of the noise, in units of its variance.
create or replace macro coupled_inflation(left_variance) as
case when left_variance < 0.1 then 2.0 else 1.0 end;

-- Likelihood ratio within which onsets belong to the 95% interval (Hansen 2000).
create or replace macro interval_limit() as 7.35;

-- An interval needs the variance of a mean, not the tail of the largest statistic: of the inflation of replicates so
-- much, and without them somewhat more than the pair's own autocorrelation asks for, which wandering adds to. Measured
-- by simulation (benchmarks/scoreboard.py).
create or replace macro interval_inflation_of_replicates(inflation) as 0.95 * inflation;
create or replace macro interval_inflation_alone(autocorrelation) as 1.7 * pow(ar_inflation(autocorrelation), 1.3);

-- Effect, in sigma of the difference of two equal runs, below which a change is taken for wandering.
-- It is wider where the candidate's stack has no replicates, and one sigma for an effect of five practical limits.
create or replace macro noise_gate(is_one_sided, is_large) as
case when is_large then 1.0 when is_one_sided then 1.5 else 1.3 end;

-- Variance of a step for the weights of a fit: never below a share of the plateau. Equal runs that are still coupled
-- are apart by rounding alone; a weight that believed it would call any offset a change.
create or replace macro noise_at_step(variance, plateau) as greatest(coalesce(variance, plateau), 0.25 * plateau);

-- A value that is further from the middle than so many sigma counts as just so far: one spike is no change of level,
-- and noise with heavy tails tests like any other.
create or replace macro drawn_in(x, sigma) as least(greatest(x, -2.5 * sigma), 2.5 * sigma);
create or replace macro drawn_in_gently(x, sigma) as least(greatest(x, -6.0 * sigma), 6.0 * sigma);

-- A change of time that counts: the medians before and after are 25% apart, and their difference is still 15% when
-- two of its standard errors are taken off. Slow spells of a shared machine reach 30% for some 15 steps, so both
-- sides have to be longer than that.
create or replace macro time_limit() as ln(1.25);
create or replace macro is_time_shift(median_shift, sigma, inflation, k, n) as
least(k, n - k) >= greatest(20, 0.15 * n)
and abs(median_shift) >= time_limit()
and abs(median_shift) - 2.0 * 1.25 * sigma * sqrt(inflation * (1.0 / k + 1.0 / (n - k))) >= ln(1.15);

-- Permutations behind the chance of a difference between component versions.
create or replace macro permutation_count() as 1999;

-- What the versions of a component compete for: a run has one hardware, whatever its name, but many libraries and
-- switches, of which each is compared with itself alone.
create or replace macro component_factor(kind, component_name) as
case when kind in ('library', 'switch') then kind || ' ' || component_name else kind end;

-- What chi-square exceeds once in four where nothing differs (Wilson and Hilferty 1931). A component that shows
-- more is held fixed while others are compared. Measured by simulation (benchmarks/fleet.py): holding all of them fixed
-- leaves no pair comparable once there are many, holding none names innocent versions.
create or replace macro telling_chi_square(degrees) as
degrees * pow(1.0 - 2.0 / (9.0 * degrees) + 0.67449 * sqrt(2.0 / (9.0 * degrees)), 3);

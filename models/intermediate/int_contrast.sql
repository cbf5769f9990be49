-- Which component versions can be compared with the other versions of their kind, and which other kinds always
-- change together with them.
-- grain: component_kind, arm
-- materialized: table
with arms as (
    select
        pair_id,
        component_kind,
        arm
    from int_survival_arm
    where component_kind <> 'none'
),

versions as (
    select
        component_kind,
        count(distinct arm) as version_count
    from arms
    group by component_kind
),

contrasts as (
    select distinct
        arms.component_kind,
        arms.arm
    from arms
    inner join versions on arms.component_kind = versions.component_kind
    where versions.version_count >= 2
),

-- Each pair on either side of a contrast, with its version of every other kind.
sides as (
    select
        contrasts.component_kind,
        contrasts.arm,
        arms.pair_id,
        arms.arm = contrasts.arm as is_in_arm
    from contrasts
    inner join arms on contrasts.component_kind = arms.component_kind
),

others as (
    select
        sides.component_kind,
        sides.arm,
        arms.component_kind as other_kind,
        arms.arm as other_arm,
        bool_or(sides.is_in_arm) as is_within,
        bool_or(not sides.is_in_arm) as is_outside
    from sides
    inner join arms on sides.pair_id = arms.pair_id and sides.component_kind <> arms.component_kind
    group by sides.component_kind, sides.arm, arms.component_kind, arms.arm
),

kinds as (
    select
        component_kind,
        arm,
        other_kind,
        bool_or(is_within) and bool_or(is_outside) and not bool_or(is_within and is_outside) as is_confounded
    from others
    group by component_kind, arm, other_kind
),

named as (
    select
        component_kind,
        arm,
        list(other_kind order by other_kind) as confounded_with
    from kinds
    where is_confounded
    group by component_kind, arm
)

select
    contrasts.component_kind,  -- kind of the component
    contrasts.arm,  -- the version that is compared with all others of its kind
    coalesce(named.confounded_with, []) as confounded_with  -- kinds of which no version occurs on both sides
from contrasts
left join named on contrasts.component_kind = named.component_kind and contrasts.arm = named.arm

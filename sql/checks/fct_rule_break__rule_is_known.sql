-- Every broken rule is one of the catalogue.
-- severity: error
-- blocking: true
select
    fct_rule_break.rule_id,
    count(*) as row_count
from fct_rule_break
left join dim_rule on fct_rule_break.rule_id = dim_rule.rule_id
where dim_rule.rule_id is null
group by fct_rule_break.rule_id

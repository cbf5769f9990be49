"""The words of the pages in English and Chinese. Names of metrics and categories come from the catalogue."""

from typing import Any

from markupsafe import Markup, escape

from warehouse.wording import counted

LANGUAGES = ("en", "zh")

WORDS: dict[str, tuple[str, str]] = {
    "title": ("First drift", "首个漂移"),
    "migrations": ("Migrations", "迁移"),
    "all_migrations": ("All migrations", "全部迁移"),
    "migration": ("Migration", "迁移"),
    "also": ("Also", "另有"),
    "baseline": ("Baseline", "基线"),
    "candidate": ("Candidate", "候选"),
    "against": ("against", "对比"),
    "verdict": ("Verdict", "结论"),
    "grade": ("Grade", "可信等级"),
    "paired_as": ("Paired as", "配对方式"),
    "raise": ("What would raise the grade", "如何提高可信等级"),
    "stack": ("What differs between the runs", "两次运行的差异"),
    "component": ("Component", "组件"),
    "setting": ("Setting", "设置"),
    "nothing_differs": ("No declared component or setting differs.", "已声明的组件与设置均相同。"),
    "timeline": ("When each category moved", "各类指标的变化时刻"),
    "timeline_note": (
        "Bars are intervals of the onset. Losing equality step by step (decoupling) is normal, on equal hardware "
        "too; drift is a bias beyond what equal runs show. An open triangle: no drift up to the last common step.",
        "横条为起点区间。逐步失去一致（解耦）是正常现象，同样硬件也会出现；漂移指超出同栈重复差异的偏差。"
        "空心三角：直至最后共同步均无漂移。",
    ),
    "first_diff": ("first difference", "首次不同"),
    "decouple": ("decoupling", "解耦"),
    "drift": ("drift", "漂移"),
    "reference": ("decoupling of equal runs", "同栈重复的解耦"),
    "focus": ("The metrics to look at first", "重点指标"),
    "focus_note": (
        "Above: both runs, with the band in which a run of the candidate's stack would lie (2 sigma): the baseline "
        "moved by the offset between the stacks, so the baseline itself may lie outside. Below: the difference, in "
        "the noise of equal runs. Solid line: drift; dashed: decoupling; dotted: restart; bars with a cross on the "
        "axis: values that are not finite.",
        "上图：两次运行，及候选同栈运行应处的噪声带（2σ）；该带以基线加上两栈间的固有偏移为中心，基线本身可能在带外。下图：以同栈噪声为单位的差值。实线：漂移；虚线：解耦；点线：重启；"
        "轴上带叉横条：非有限值。",
    ),
    "drifted": ("First to drift, or not finite", "最先漂移或非有限的指标"),
    "ranked": ("All metrics, ranked", "全部指标排序"),
    "rank": ("Rank", "名次"),
    "metric": ("Metric", "指标"),
    "stage": ("Stage", "阶段"),
    "category": ("Category", "类别"),
    "onset": ("Drift from step", "漂移起始步"),
    "decoupled": ("Decoupled at", "解耦步"),
    "differs_from": ("Differs from", "首次不同步"),
    "probability": ("P(first)", "最先概率"),
    "effect": ("Effect", "效应"),
    "in_sigma": ("in sigma", "σ 倍数"),
    "curves": ("Curves", "曲线"),
    "tied": ("tied", "并列"),
    "repeats": ("repeats", "重复于"),
    "anomalies": ("Anomalies of the candidate", "候选运行的异常"),
    "no_anomalies": ("No rule is broken.", "未违反任何规则。"),
    "remarks": ("remarks that are no faults", "条说明（非故障）"),
    "severity": ("Severity", "严重程度"),
    "rule": ("Rule", "规则"),
    "steps": ("Steps", "步数"),
    "from_step": ("From step", "起始步"),
    "seen": ("Seen", "观测"),
    "expected": ("Must hold", "应满足"),
    "meaning": ("What it means", "含义"),
    "parity": ("Data order", "数据顺序"),
    "parity_equal": ("equal through step", "一致至第几步"),
    "parity_broken": ("not equal from step", "不一致始于第几步"),
    "parity_unknown": (
        "No metric that must be equal was logged: nothing shows whether the runs saw the same data.",
        "未记录必须相等的指标：无法判断数据是否一致。",
    ),
    "coverage": ("Coverage", "覆盖"),
    "run": ("Run", "运行"),
    "role": ("Role", "角色"),
    "missing": ("missing", "缺失"),
    "metrics": ("Metrics", "指标数"),
    "focus_logged": ("To look at first", "重点指标"),
    "lacking": ("Lacking", "缺少"),
    "not_finite": ("Not finite", "非有限值"),
    "quarantined": ("Unreadable pieces", "无法读取"),
    "restarts": ("Restarts", "重启"),
    "common_steps": ("common steps", "共同步数"),
    "time": ("Time", "耗时"),
    "time_note": (
        "Time never competes for the first cause. Medians over all steps, the longest loss first.",
        "耗时不参与首因判定。为全部步的中位数，增量最大者在前。",
    ),
    "phase": ("Phase", "阶段"),
    "ratio": ("Ratio", "比值"),
    "share": ("Share of step", "占单步比例"),
    "replicates": ("Replicates: pairs of equal stack", "同栈重复"),
    "replicates_note": (
        "Nothing should differ between them beyond noise: this is what the noise floor is taken from.",
        "它们之间除噪声外不应有差异：噪声基底由此得出。",
    ),
    "runs": ("Runs", "运行列表"),
    "language": ("中文", "English"),
    "dark": ("Light or dark", "明暗切换"),
    "first": ("First to move", "最先变化"),
    "survival": ("How long pairs go without drift", "多久未漂移"),
    "survival_hardware": ("Pairs without drift, by hardware of the candidate", "按候选硬件：未漂移的配对比例"),
    "survival_version": ("Pairs without drift, by component version", "按组件版本：未漂移的配对比例"),
    "contrast": ("Does a version drift earlier than the others?", "哪个版本更早漂移？"),
    "version": ("Version", "版本"),
    "pairs_drifted": ("Drifted pairs", "漂移配对"),
    "others_drifted": ("On other versions", "其他版本"),
    "rate_ratio": ("Rate ratio (95%)", "漂移率之比（95%）"),
    "finding": ("Finding", "结论"),
    "survival_note": (
        "Share of pairs that have not drifted up to a step. A pair without drift counts up to its last common step.",
        "至某步尚未漂移的配对比例；无漂移的配对计至其最后共同步。",
    ),
    "nothing_yet": ("No migrated run has been judged yet.", "尚无已判定的迁移。"),
    "made_from": ("Made from publication", "数据版本"),
    "nothing": ("nothing", "无"),
    "no_pair": (
        "No pair: nothing says which run is the baseline. Name it in migration.yaml.",
        "无配对：未指明基线运行，请写入 migration.yaml。",
    ),
}

VERDICTS: dict[str, tuple[str, str]] = {
    "nonfinite": ("not finite", "出现非有限值"),
    "initial_mismatch": ("different from the start", "起点即不同"),
    "parity_broken": ("different data", "数据不一致"),
    "drift": ("drift", "漂移"),
    "decoupled_only": ("decoupled, no drift", "仅解耦，无漂移"),
    "within_floor": ("within the noise floor", "处于噪声基底内"),
    "insufficient": ("too little to judge", "数据不足"),
}

FINDINGS: dict[str, tuple[str, str]] = {
    "earlier": ("earlier", "更早"),
    "later": ("later", "更晚"),
    "no_difference": ("no difference shown", "未见差异"),
    "confounded": ("can't be told apart from", "无法区分于"),
    "too_few_onsets": ("too few onsets", "事件过少"),
}

STAGES: dict[str, tuple[str, str]] = {
    "data": ("data", "数据"),
    "rollout_or_weight_sync": ("rollout or weight sync", "推理或权重同步"),
    "training": ("training", "训练"),
    "reward": ("reward", "奖励"),
    "evaluation": ("evaluation", "评测"),
    "queue": ("queue", "队列"),
    "time": ("time", "耗时"),
}

ALSO_ZH = {
    "not finite from": "自第 {} 步起非有限",
    "slower from": "自第 {} 步起变慢",
    "faster from": "自第 {} 步起变快",
    "rule broken from": "自第 {} 步起违反规则",
}

ADVICE_ZH = {
    "log more steps: at least 20 that both runs have": "记录更多步：至少 20 个共同步",
    "nothing: replicates of all its stacks stand behind it": "无：所有栈均有重复支撑",
    "run again: ": "再次运行：",
    " and ": "，",
    " more on the baseline's stack": " 次（基线栈）",
    " more on the candidate's stack": " 次（候选栈）",
}
"""The pieces that an advice is made of."""


TIME_ZH = {
    "no stage became 25% slower or faster": "没有阶段变慢或变快 25% 以上",
    "no stage was timed": "未记录耗时",
}


def both(english: Any, chinese: Any) -> Markup:
    """Return a text in both languages; the style sheet shows the chosen one."""
    return Markup('<span lang="en">{}</span><span lang="zh">{}</span>').format(english, chinese)


def word(key: str) -> Markup:
    """Return a word of the pages in both languages.

    Raises:
        KeyError: If there is no such word.
    """
    return both(*WORDS[key])


def verdict_word(verdict: str) -> Markup:
    """Return a verdict in both languages."""
    return both(*VERDICTS.get(verdict, (verdict, verdict)))


def finding_word(finding: str) -> Markup:
    """Return a finding of a contrast in both languages."""
    return both(*FINDINGS.get(finding, (finding, finding)))


def stage_word(stage: str | None) -> Markup:
    """Return a stage in both languages; nothing for None."""
    return both(*STAGES.get(stage, (stage, stage))) if stage else Markup("")


def also_word(also: str | None) -> Markup:
    """Return in both languages what stands beside a verdict, as the question `verdicts` names it."""
    parts = [part.rpartition(" ") for part in (also or "").split(", ") if part]
    return both(also or "", "，".join(ALSO_ZH[kind].format(step) for kind, _, step in parts))


def advice_word(advice: str) -> Markup:
    """Return what would raise the grade in both languages."""
    chinese = advice
    for piece, translated in ADVICE_ZH.items():
        chinese = chinese.replace(piece, translated)
    return both(advice, chinese)


def pairing_word(how: str) -> Markup:
    """Return how a pair was made in both languages."""
    return both(how, {"declared": "已声明", "inferred": "由名称推断"}.get(how, how))


def evidence(verdict: dict[str, Any]) -> Markup:
    """Return in both languages how many replicates the noise floor was taken from."""
    before, after = verdict.get("baseline_replicates") or 0, verdict.get("candidate_replicates") or 0
    if not before and not after:
        return both("no replicate: the noise is guessed from the pair itself", "无重复：噪声由该配对自身估计")
    return both(
        f"noise floor from {counted(before, 'replicate')} of the baseline and {after} of the candidate",
        f"噪声基底来自基线 {before} 次、候选 {after} 次重复",
    )


def chinese_time(verdict: str | None, shifts: list[dict[str, Any]]) -> str:
    """Return the verdict about time in Chinese.

    Args:
        verdict: The English one, which holds the sentences of the shifts that count most.
        shifts: Rows of mart_time_shift.
    """
    if not verdict:
        return ""
    parts = []
    for shift in shifts:
        if shift["sentence"] in verdict:
            slower = shift["ratio"] >= 1
            factor = shift["ratio"] if slower else 1 / shift["ratio"]
            since = "自首步起" if shift["onset_step"] is None else f"自第 {shift['onset_step']} 步起"
            parts.append(f"{shift['metric']} {since}{'慢' if slower else '快'}至 {factor:.2f} 倍")
    return "；".join(parts) or TIME_ZH.get(verdict, verdict)


def chinese_reason(verdict: dict[str, Any], label_zh: str) -> str:
    """Return the verdict as a Chinese sentence; the English one is the reason of mart_pair_verdict.

    Args:
        verdict: A row of mart_pair_verdict.
        label_zh: Chinese name of the metric that drifted first, or its canonical name.
    """
    kind = verdict["verdict"]
    last = verdict.get("last_common_step")
    if kind == "drift":
        stage = STAGES.get(verdict["first_stage"], ("", str(verdict["first_stage"])))[1]
        return f"{label_zh}（{verdict['first_metric']}）自第 {verdict['first_onset_step']} 步起偏离，指向：{stage}。"
    if kind == "decoupled_only":
        return f"曲线分开，但差异不超过同栈重复：至第 {last} 步没有持续偏差。"
    if kind == "within_floor":
        return f"至第 {last} 步，差异不超过同栈重复。"
    if kind == "insufficient":
        return "共同步不足 20，无法判定。"
    if kind == "parity_broken":
        return f"必须相等的指标自第 {verdict.get('parity_broken_at')} 步起不相等：两次运行所用数据不同。"
    if kind == "initial_mismatch":
        return "首个共同步即有实质差异：两次运行起点不同。"
    if kind == "nonfinite":
        return "损失、梯度或奖励出现非有限值。"
    return str(verdict.get("reason", ""))


def plain(value: Any) -> str:
    """Return a cell: numbers with four significant digits, nothing for null."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)


def named_steps(value: Any) -> Markup:
    """Return a list of metrics, each with the step from which it is concerned."""
    parts = [f"{item['metric']} ({item['step']})" if isinstance(item, dict) else str(item) for item in value or []]
    return escape(", ".join(parts))

/** A policy as sentences with fields in them, beside what it would have done to the past. */

import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'
import type { Policy, TimeWindow } from '../../client/operations.ts'
import { formatUsd } from '../words/money.ts'
import { nameChain } from '../words/names.ts'
import { shortText } from '../words/plain-text.ts'
import { formatLongSpan, nameCategory } from '../words/policy.ts'
import {
  type DraftField,
  type DraftProblems,
  draftPreset,
  findProblems,
  type PolicyDraft,
  presets,
  toPolicy,
} from '../words/policy-draft.ts'
import { ActionButton } from './controls.tsx'
import { Icon } from './icon.tsx'
import { Panel } from './panel.tsx'
import { Untrusted } from './quote.tsx'
import { Replay, ShortVerdict, useTrial } from './replay.tsx'
import { PolicyWords } from './sentence.tsx'

const allCategories = ['transfer', 'x402', 'card', 'gasless', 'invest', 'swap', 'payout'] as const
const allAssets = ['USDC', 'EURC', 'USDT', 'PYUSD', 'USD', 'EUR', 'GBP', 'INR'] as const
const allChains = [
  'base-sepolia',
  'arbitrum-sepolia',
  'base',
  'arbitrum',
  'optimism',
  'polygon',
  'ethereum',
  'solana',
] as const
const repeatSpans = ['60', '600', '3600', '86400'] as const
const cooldowns = ['600', '3600', '86400', '604800'] as const
const answerTimes = ['900', '3600', '14400', '86400', '604800'] as const

type Change = (draft: PolicyDraft) => void

interface ClauseProps {
  readonly draft: PolicyDraft
  readonly problems: DraftProblems
  readonly set: (part: Partial<PolicyDraft>) => void
}

/**
 * @property base policy that is edited; null for a new one.
 * @property keyIds keys whose past the draft is tried on.
 * @property back button to leave with.
 */
export function PolicyEditor({
  draft,
  change,
  base,
  keyIds,
  name,
  back,
  save,
  saveWords,
}: {
  readonly draft: PolicyDraft
  readonly change: Change
  readonly base: Policy | null
  readonly keyIds: readonly string[]
  readonly name: string
  readonly back: ComponentChildren
  readonly save: () => Promise<unknown>
  readonly saveWords: string
}) {
  const problems = findProblems(draft)
  const isWhole = Object.keys(problems).length === 0
  const policy = isWhole ? toPolicy(draft, base) : null
  const trying = useTrial(policy, keyIds)
  const clause: ClauseProps = { draft, problems, set: (part) => change({ ...draft, ...part }) }
  return (
    <div class="cols">
      <section class="panel" aria-label="Policy">
        <div class="panel__body stack">
          <Presets draft={draft} change={change} />
          <div>
            <HowMuch {...clause} />
            <AskMe {...clause} />
            <How {...clause} />
            <ToWhom {...clause} />
            <details class="fold more" open={hasMore(draft)}>
              <summary class="linkbtn">More rules: money, sellers, shops, tickers, numbers, times</summary>
              <div>
                <From {...clause} />
                <Sellers {...clause} />
                <Shops {...clause} />
                <Tickers {...clause} />
                <HowOften {...clause} />
                <When {...clause} />
              </div>
            </details>
          </div>
        </div>
        <div class="actionbar">
          {back}
          <span class="only-phone small num">
            <ShortVerdict trying={trying} />
          </span>
          <ActionButton kind="primary" run={save} busy="Saving" disabled={!isWhole}>
            {saveWords}
          </ActionButton>
        </div>
      </section>
      <aside class="sticky stack stack--loose" aria-label="What this policy means">
        <Replay trying={trying} isWhole={isWhole} />
        {policy !== null && (
          <Panel title="In words">
            <div class="panel__body stack stack--tight small">
              <p>
                <Untrusted>{shortText(name === '' ? 'The agent' : name)}</Untrusted> spends within this.
                Everything else is denied.
              </p>
              <PolicyWords policy={policy} />
            </div>
          </Panel>
        )}
      </aside>
    </div>
  )
}

/** True if a rule of the folded part is in use, so that it is never hidden. */
function hasMore(draft: PolicyDraft): boolean {
  const { assets, chains, sellers, shops, symbols, windows } = draft
  const texts = [
    draft.sellersNever,
    draft.recordPercent,
    draft.shopsNever,
    draft.symbolsNever,
    draft.from,
    draft.until,
  ]
  if (draft.unknownSellers !== 'allow') return true
  const counts = [draft.dailyCount, draft.weeklyCount, draft.monthlyCount, draft.totalCount]
  return (
    [assets, chains, sellers, shops, symbols, windows].some((one) => one !== null) ||
    [...texts, ...counts].some((text) => text !== '')
  )
}

/** True if the amounts are those of the preset. */
function isPreset(draft: PolicyDraft, preset: (typeof presets)[number]): boolean {
  return (
    draft.total === '' &&
    (['perTransaction', 'daily', 'weekly', 'monthly', 'above'] as const).every(
      (field) => draft[field] === preset[field],
    )
  )
}

function Presets({ draft, change }: { readonly draft: PolicyDraft; readonly change: Change }) {
  const group = useId()
  const isOwn = !presets.some((preset) => isPreset(draft, preset))
  return (
    <fieldset>
      <legend class="hide">Start from</legend>
      <div class="presets">
        {presets.map((preset) => (
          <label class="preset" key={preset.name}>
            <input
              type="radio"
              name={group}
              checked={isPreset(draft, preset)}
              onChange={() => {
                const { perTransaction, daily, weekly, monthly, above } = draftPreset(preset)
                change({ ...draft, perTransaction, daily, weekly, monthly, above })
              }}
            />
            <b>{preset.title}</b>
            {formatUsd(preset.daily).replace(/\D00$/, '')} a day
          </label>
        ))}
        <label class="preset">
          <input type="radio" name={group} checked={isOwn} onChange={() => undefined} />
          <b>Your own</b>
          As the fields say
        </label>
      </div>
    </fieldset>
  )
}

function Clause({
  label,
  problem = '',
  children,
}: {
  readonly label: string
  readonly problem?: string | undefined
  readonly children: ComponentChildren
}) {
  return (
    <div class="clause">
      <span class="label">{label}</span>
      <div class="stack stack--tight">
        {children}
        {problem !== '' && (
          <p class="field__error">
            <Icon name="warning" small />
            {problem}
          </p>
        )}
      </div>
    </div>
  )
}

/** The first problem of some fields. */
function first(problems: DraftProblems, ...fields: readonly DraftField[]): string {
  return fields.map((field) => problems[field] ?? '').find((words) => words !== '') ?? ''
}

type TextField =
  | 'perTransaction'
  | 'daily'
  | 'weekly'
  | 'monthly'
  | 'total'
  | 'above'
  | 'dailyCount'
  | 'weeklyCount'
  | 'monthlyCount'
  | 'totalCount'
  | 'repeatCount'
  | 'recordPercent'
  | 'recordOf'

function UsdField({ field, label, draft, problems, set }: ClauseProps & { field: TextField; label: string }) {
  return (
    <span class="money">
      <input
        class="input"
        inputMode="decimal"
        autoComplete="off"
        aria-label={`${label}, in US dollars`}
        aria-invalid={problems[field] === undefined ? undefined : 'true'}
        value={draft[field]}
        placeholder="no limit"
        onInput={(event) => set({ [field]: event.currentTarget.value.trim() })}
      />
    </span>
  )
}

function HowMuch(props: ClauseProps) {
  const { problems } = props
  return (
    <Clause
      label="How much"
      problem={first(problems, 'perTransaction', 'daily', 'weekly', 'monthly', 'total')}
    >
      <div class="sentence">
        Up to <UsdField {...props} field="perTransaction" label="At a time" /> at a time,{' '}
        <UsdField {...props} field="daily" label="A day" /> a day,{' '}
        <UsdField {...props} field="weekly" label="A week" /> a week,{' '}
        <UsdField {...props} field="monthly" label="A month" /> a month and{' '}
        <UsdField {...props} field="total" label="In total" /> in total.
      </div>
    </Clause>
  )
}

function AskMe(props: ClauseProps) {
  const { draft, problems, set } = props
  const isAsking = draft.above !== ''
  return (
    <Clause label="Ask me" problem={first(problems, 'above', 'ttl')}>
      <div class="sentence">
        <select
          class="input"
          aria-label="Ask me"
          value={isAsking ? 'above' : 'never'}
          onChange={(event) => set({ above: event.currentTarget.value === 'never' ? '' : '2' })}
        >
          <option value="above">Above</option>
          <option value="never">Never</option>
        </select>
        {isAsking && (
          <>
            <UsdField {...props} field="above" label="Ask me above" /> with{' '}
            <SpanSelect
              label="Time to answer"
              options={answerTimes}
              value={draft.ttl}
              choose={(ttl) => set({ ttl })}
            />{' '}
            to answer
          </>
        )}
      </div>
    </Clause>
  )
}

/** Spans to choose from; one that is not among them stays choosable. */
function SpanSelect({
  label,
  options,
  value,
  choose,
  none,
}: {
  readonly label: string
  readonly options: readonly string[]
  readonly value: string
  readonly choose: (seconds: string) => void
  /** Words for no span. */
  readonly none?: string
}) {
  const all = value === '' || options.includes(value) ? options : [...options, value]
  return (
    <select
      class="input"
      aria-label={label}
      value={value}
      onChange={(event) => choose(event.currentTarget.value)}
    >
      {none !== undefined && <option value="">{none}</option>}
      {all.map((seconds) => (
        <option key={seconds} value={seconds}>
          {formatLongSpan(Number(seconds))}
        </option>
      ))}
    </select>
  )
}

function Ticks({
  label,
  options,
  chosen,
  nameOption,
  choose,
}: {
  readonly label: string
  readonly options: readonly string[]
  readonly chosen: readonly string[]
  readonly nameOption: (option: string) => string
  readonly choose: (chosen: readonly string[]) => void
}) {
  const all = [...options, ...chosen.filter((one) => !options.includes(one))]
  return (
    // biome-ignore lint/a11y/useSemanticElements: the clause that holds it names it already.
    <div class="ticks" role="group" aria-label={label}>
      {all.map((option) => (
        <label class="check" key={option}>
          <input
            type="checkbox"
            checked={chosen.includes(option)}
            onChange={(event) =>
              choose(
                event.currentTarget.checked ? [...chosen, option] : chosen.filter((one) => one !== option),
              )
            }
          />
          {nameOption(option)}
        </label>
      ))}
    </div>
  )
}

function How({ draft, problems, set }: ClauseProps) {
  return (
    <Clause label="How" problem={first(problems, 'categories')}>
      <Ticks
        label="How it may pay"
        options={allCategories}
        chosen={draft.categories}
        nameOption={nameCategory}
        choose={(categories) => set({ categories })}
      />
    </Clause>
  )
}

type AllowField = 'payees' | 'sellers' | 'shops' | 'symbols'
type NeverField = 'payeesNever' | 'sellersNever' | 'shopsNever' | 'symbolsNever'

/** Anyone, or only those named; and those never. */
function Lists({
  draft,
  set,
  allow,
  never,
  label,
  any,
  only,
  neverWords,
  example,
}: ClauseProps & {
  readonly allow: AllowField
  readonly never: NeverField
  readonly label: string
  readonly any: string
  readonly only: string
  readonly neverWords: string
  readonly example: string
}) {
  const named = draft[allow]
  return (
    <>
      <div class="sentence">
        <select
          class="input"
          aria-label={label}
          value={named === null ? 'any' : 'only'}
          onChange={(event) => set({ [allow]: event.currentTarget.value === 'any' ? null : '' })}
        >
          <option value="any">{any}</option>
          <option value="only">{only}</option>
        </select>
      </div>
      {named !== null && (
        <textarea
          class="input"
          rows={2}
          spellcheck={false}
          aria-label={only}
          placeholder={`${example}. None named: none allowed.`}
          value={named}
          onInput={(event) => set({ [allow]: event.currentTarget.value })}
        />
      )}
      <input
        class="input"
        autoComplete="off"
        spellcheck={false}
        aria-label={neverWords}
        placeholder={`${neverWords}: ${example}`}
        value={draft[never].replaceAll('\n', ', ')}
        onInput={(event) => set({ [never]: event.currentTarget.value })}
      />
    </>
  )
}

function ToWhom(props: ClauseProps) {
  const { draft, problems, set } = props
  return (
    <Clause label="To whom" problem={first(problems, 'payees', 'payeesNever', 'cooldown')}>
      <Lists
        {...props}
        allow="payees"
        never="payeesNever"
        label="To whom it may send"
        any="Anyone"
        only="Only those I name"
        neverWords="Never to these"
        example="0x… or contact:Alice"
      />
      <div class="sentence">
        New payees wait{' '}
        <SpanSelect
          label="Wait for anyone new"
          options={cooldowns}
          value={draft.cooldown}
          none="not at all"
          choose={(cooldown) => set({ cooldown })}
        />{' '}
        before their first payment.
      </div>
    </Clause>
  )
}

function From({ draft, set }: ClauseProps) {
  return (
    <Clause label="From">
      <AnyOrSome
        label="From which money"
        any="Any money"
        some="Only this money"
        options={allAssets}
        chosen={draft.assets}
        nameOption={(asset) => asset}
        choose={(assets) => set({ assets })}
      />
      <AnyOrSome
        label="On which chains"
        any="On any chain"
        some="Only on these chains"
        options={allChains}
        chosen={draft.chains}
        nameOption={nameChain}
        choose={(chains) => set({ chains })}
      />
    </Clause>
  )
}

function AnyOrSome({
  label,
  any,
  some,
  options,
  chosen,
  nameOption,
  choose,
}: {
  readonly label: string
  readonly any: string
  readonly some: string
  readonly options: readonly string[]
  readonly chosen: readonly string[] | null
  readonly nameOption: (option: string) => string
  readonly choose: (chosen: readonly string[] | null) => void
}) {
  return (
    <>
      <div class="sentence">
        <select
          class="input"
          aria-label={label}
          value={chosen === null ? 'any' : 'some'}
          onChange={(event) => choose(event.currentTarget.value === 'any' ? null : options.slice(0, 1))}
        >
          <option value="any">{any}</option>
          <option value="some">{some}</option>
        </select>
      </div>
      {chosen !== null && (
        <Ticks label={label} options={options} chosen={chosen} nameOption={nameOption} choose={choose} />
      )}
    </>
  )
}

function Sellers(props: ClauseProps) {
  return (
    <Clause
      label="Sellers"
      problem={first(
        props.problems,
        'sellers',
        'sellersNever',
        'recordPercent',
        'recordOf',
        'unknownSellers',
      )}
    >
      <Lists
        {...props}
        allow="sellers"
        never="sellersNever"
        label="Sellers it may buy from"
        any="Any website"
        only="Only websites I name"
        neverWords="Never from these websites"
        example="https://api.example.com or *.example.com"
      />
      <div class="sentence">
        Only if it delivered <CountField {...props} field="recordPercent" label="Percent delivered" /> % of
        its last <CountField {...props} field="recordOf" label="Purchases of a record" /> paid purchases.
      </div>
      <div class="sentence">
        <select
          class="input"
          aria-label="Sellers not known so well"
          value={props.draft.unknownSellers}
          onChange={(event) => props.set({ unknownSellers: readUnknown(event.currentTarget.value) })}
        >
          <option value="allow">Allow</option>
          <option value="ask">Ask me about</option>
          <option value="deny">Refuse</option>
        </select>{' '}
        sellers that are not known so well.
      </div>
    </Clause>
  )
}

function readUnknown(value: string): PolicyDraft['unknownSellers'] {
  return value === 'ask' || value === 'deny' ? value : 'allow'
}

function Shops(props: ClauseProps) {
  return (
    <Clause label="Shops" problem={first(props.problems, 'shops', 'shopsNever')}>
      <Lists
        {...props}
        allow="shops"
        never="shopsNever"
        label="Shops it may pay by card"
        any="Any kind of shop"
        only="Only kinds of shops I name"
        neverWords="Never these kinds of shops"
        example="7995 is gambling"
      />
    </Clause>
  )
}

function Tickers(props: ClauseProps) {
  return (
    <Clause label="Tickers" problem={first(props.problems, 'symbols', 'symbolsNever')}>
      <Lists
        {...props}
        allow="symbols"
        never="symbolsNever"
        label="Tickers it may trade"
        any="Anything listed"
        only="Only tickers I name"
        neverWords="Never these tickers"
        example="VTI"
      />
    </Clause>
  )
}

function CountField({
  field,
  label,
  draft,
  problems,
  set,
}: ClauseProps & { readonly field: TextField; readonly label: string }) {
  return (
    <input
      class="input input--short num"
      inputMode="numeric"
      autoComplete="off"
      aria-label={label}
      aria-invalid={problems[field] === undefined ? undefined : 'true'}
      placeholder="any"
      value={draft[field]}
      onInput={(event) => set({ [field]: event.currentTarget.value.trim() })}
    />
  )
}

function HowOften(props: ClauseProps) {
  const { draft, set } = props
  return (
    <Clause
      label="How often"
      problem={first(
        props.problems,
        'dailyCount',
        'weeklyCount',
        'monthlyCount',
        'totalCount',
        'repeatCount',
        'repeatSpan',
      )}
    >
      <div class="sentence">
        At most <CountField {...props} field="dailyCount" label="Payments a day" /> payments a day,{' '}
        <CountField {...props} field="weeklyCount" label="Payments a week" /> a week,{' '}
        <CountField {...props} field="monthlyCount" label="Payments a month" /> a month and{' '}
        <CountField {...props} field="totalCount" label="Payments in total" /> in total.
      </div>
      <div class="sentence">
        The same payment at most <CountField {...props} field="repeatCount" label="Equal payments" /> times in{' '}
        <SpanSelect
          label="Span of equal payments"
          options={repeatSpans}
          value={draft.repeatSpan}
          choose={(repeatSpan) => set({ repeatSpan })}
        />
        ; then it stops and asks me.
      </div>
    </Clause>
  )
}

const weekdays = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const

function When({ draft, problems, set }: ClauseProps) {
  const { windows } = draft
  const office: TimeWindow = {
    days: ['mon', 'tue', 'wed', 'thu', 'fri'],
    start: '09:00',
    end: '17:00',
    tz: Intl.DateTimeFormat().resolvedOptions().timeZone,
  }
  const put = (position: number, part: Partial<TimeWindow>) =>
    set({ windows: (windows ?? []).map((one, at) => (at === position ? { ...one, ...part } : one)) })
  return (
    <Clause label="When" problem={first(problems, 'windows', 'from', 'until')}>
      <div class="sentence">
        <select
          class="input"
          aria-label="When"
          value={windows === null ? 'any' : 'some'}
          onChange={(event) => set({ windows: event.currentTarget.value === 'any' ? null : [office] })}
        >
          <option value="any">At any time</option>
          <option value="some">Only at these times</option>
        </select>
      </div>
      {windows?.map((window, position) => (
        <Window
          key={String(position)}
          window={window}
          put={(part) => put(position, part)}
          remove={() => set({ windows: windows.filter((_, at) => at !== position) })}
        />
      ))}
      {windows !== null && (
        <button class="linkbtn small" type="button" onClick={() => set({ windows: [...windows, office] })}>
          Add a time
        </button>
      )}
      <div class="sentence">
        From{' '}
        <input
          class="input"
          type="datetime-local"
          aria-label="Not before"
          value={draft.from}
          onInput={(event) => set({ from: event.currentTarget.value })}
        />{' '}
        until{' '}
        <input
          class="input"
          type="datetime-local"
          aria-label="Until"
          value={draft.until}
          onInput={(event) => set({ until: event.currentTarget.value })}
        />
        <span class="small faint">Empty: always.</span>
      </div>
    </Clause>
  )
}

function Window({
  window,
  put,
  remove,
}: {
  readonly window: TimeWindow
  readonly put: (part: Partial<TimeWindow>) => void
  readonly remove: () => void
}) {
  const toggle = (day: (typeof weekdays)[number]) =>
    put({
      days: weekdays.filter((one) => (one === day ? !window.days.includes(day) : window.days.includes(one))),
    })
  return (
    <div class="stack stack--tight">
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset cannot be laid out in a row. */}
      <div class="seg seg--days" role="group" aria-label="Days">
        {weekdays.map((day) => (
          <button
            type="button"
            key={day}
            aria-pressed={window.days.includes(day)}
            onClick={() => toggle(day)}
          >
            {day.charAt(0).toUpperCase() + day.slice(1)}
          </button>
        ))}
      </div>
      <div class="sentence">
        <input
          class="input"
          type="time"
          aria-label="From"
          value={window.start}
          onInput={(event) => put({ start: event.currentTarget.value })}
        />{' '}
        to{' '}
        <input
          class="input"
          type="time"
          aria-label="To"
          value={window.end}
          onInput={(event) => put({ end: event.currentTarget.value })}
        />{' '}
        <span class="small faint">{window.tz}</span>
        <button class="linkbtn small" type="button" onClick={remove}>
          Remove
        </button>
      </div>
    </div>
  )
}

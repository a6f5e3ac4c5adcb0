/** A draft of a policy, tried on the decisions of the past. Nothing is spent to find out. */
import { useEffect, useState } from 'preact/hooks'
import type { Decision, Policy, PolicySimulateResponse } from '../../client/operations.ts'
import { bursar, describeError } from '../data/gateway.ts'
import { findShare } from '../words/money.ts'
import { capital, describeViolation } from '../words/policy.ts'
import { Amount } from './amount.tsx'
import { nameSubject } from './decision.tsx'
import { Panel } from './panel.tsx'
import { Untrusted } from './quote.tsx'

type Change = NonNullable<PolicySimulateResponse['changed']>[number]

/** @property replayed number of decisions it was tried on. @property past the newest of them, oldest first. */
export interface Trial {
  readonly replayed: number
  readonly changed: readonly Change[]
  readonly past: readonly Decision[]
}

export type Trying =
  | { readonly status: 'waiting' }
  | { readonly status: 'failed'; readonly words: string }
  | { readonly status: 'ready'; readonly trial: Trial }

/** After the last key. */
const QUIET_MS = 300

/** @param policy null: the draft makes no policy yet. @param keyIds keys whose past it is tried on. */
export function useTrial(policy: Policy | null, keyIds: readonly string[]): Trying {
  const [trying, set] = useState<Trying>({ status: 'waiting' })
  const text = JSON.stringify(policy)
  const keys = keyIds.join()
  useEffect(() => {
    if (policy === null) return
    let isCurrent = true
    const timer = setTimeout(() => {
      tryOn(policy, keys === '' ? [] : keys.split(','))
        .then((trial): Trying => ({ status: 'ready', trial }))
        .catch((error: unknown): Trying => ({ status: 'failed', words: describeError(error) }))
        .then((found) => {
          if (isCurrent) set(found)
        })
    }, QUIET_MS)
    return () => {
      isCurrent = false
      clearTimeout(timer)
    }
    // The policy is compared by its text.
  }, [text, keys])
  return trying
}

async function tryOn(policy: Policy, keyIds: readonly string[]): Promise<Trial> {
  const trials = await Promise.all(
    keyIds.map(async (keyId) => {
      const [answer, page] = await Promise.all([
        bursar.policy.simulate({ keyId, policy, replay: true }),
        bursar.agents.decisions({ keyId, limit: 100 }),
      ])
      return { replayed: answer.replayed ?? 0, changed: answer.changed ?? [], past: page.decisions }
    }),
  )
  const byTime = <Row extends { readonly at: string }>(rows: readonly Row[]) =>
    rows.toSorted((one, other) => one.at.localeCompare(other.at))
  return {
    replayed: trials.reduce((sum, { replayed }) => sum + replayed, 0),
    changed: byTime(trials.flatMap(({ changed }) => changed)),
    past: byTime(trials.flatMap(({ past }) => past)),
  }
}

function countChanges({ changed }: Trial, now: string): number {
  return changed.filter((change) => change.now === now).length
}

/** `3 of 41 denied`, for the bar at the bottom of a phone. */
export function ShortVerdict({ trying }: { readonly trying: Trying }) {
  if (trying.status !== 'ready' || trying.trial.replayed === 0) return null
  const { trial } = trying
  return (
    <>
      <b class="strong">{countChanges(trial, 'deny')}</b> of {trial.replayed} denied
    </>
  )
}

export function Replay({ trying, isWhole }: { readonly trying: Trying; readonly isWhole: boolean }) {
  return (
    <Panel title="Tried on your past">
      <div class="panel__body stack">
        <div aria-live="polite" aria-busy={trying.status === 'waiting'}>
          <Verdict trying={trying} isWhole={isWhole} />
        </div>
        {trying.status === 'ready' && trying.trial.replayed > 0 && (
          <>
            <Strip trial={trying.trial} />
            <p class="small soft">
              The last {trying.trial.replayed === 1 ? 'decision' : `${trying.trial.replayed} decisions`}; what
              was denied anyway is not counted. Nothing was spent to find this out.
            </p>
          </>
        )}
      </div>
      {trying.status === 'ready' && trying.trial.changed.length > 0 && <Changes trial={trying.trial} />}
    </Panel>
  )
}

function Verdict({ trying, isWhole }: { readonly trying: Trying; readonly isWhole: boolean }) {
  if (!isWhole) return <p class="soft">Complete the fields that are marked, and it is tried again.</p>
  if (trying.status === 'waiting') return <p class="soft">Trying it.</p>
  if (trying.status === 'failed') return <p class="soft">{trying.words}</p>
  const { trial } = trying
  if (trial.replayed === 0)
    return (
      <p class="soft">There is no past yet. Once agents have paid, you see here what would have changed.</p>
    )
  const [asked, allowed] = [countChanges(trial, 'approval_required'), countChanges(trial, 'allow')]
  return (
    <div class="stack stack--tight">
      <p class="verdict">
        Would have denied {countChanges(trial, 'deny')} of {trial.replayed}
      </p>
      {asked > 0 && <p class="small">Would have asked you about {asked} more.</p>}
      {allowed > 0 && <p class="small">Would have allowed {allowed} that did not pass.</p>}
    </div>
  )
}

const MAX_BARS = 41
const BAR_WIDTH = 5
const STRIP_HEIGHT = 32
const MIN_HEIGHT = 4

/** The newest decisions as bars by amount; red is what this policy would newly deny. */
function Strip({ trial }: { readonly trial: Trial }) {
  const changes = new Map(trial.changed.map((change) => [change.decisionId, change.now]))
  const past = trial.past.slice(-MAX_BARS)
  const most = past.reduce((top, { usd }) => Math.max(top, Number(usd ?? 0)), 0)
  const chooseClass = (decision: Decision) => {
    const now = changes.get(decision.decisionId)
    if (now === 'deny') return 'dbad'
    return now === 'approval_required' ? 'd4' : 'dtrack'
  }
  return (
    <svg
      class="strip"
      viewBox={`0 0 ${MAX_BARS * BAR_WIDTH} ${STRIP_HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={`The last ${past.length} decisions as bars by amount; ${past.filter((one) => chooseClass(one) === 'dbad').length} would be denied that were not`}
    >
      {past.map((decision, position) => {
        // Square roots keep the small ones visible beside the large.
        const share = most === 0 ? 0 : Math.sqrt(findShare(decision.usd ?? '0', String(most)) / 100)
        const height = MIN_HEIGHT + share * (STRIP_HEIGHT - MIN_HEIGHT)
        return (
          <rect
            key={decision.decisionId}
            class={chooseClass(decision)}
            x={position * BAR_WIDTH}
            y={STRIP_HEIGHT - height}
            width={BAR_WIDTH - 2}
            height={height}
          />
        )
      })}
    </svg>
  )
}

const verdictWords: Readonly<Record<string, string>> = {
  allow: 'allowed',
  deny: 'denied',
  approval_required: 'asks you',
  insufficient_funds: 'too little money',
}

const SHOWN_CHANGES = 6

function Changes({ trial }: { readonly trial: Trial }) {
  const byId = new Map(trial.past.map((decision) => [decision.decisionId, decision]))
  const shown = trial.changed.slice(-SHOWN_CHANGES).reverse()
  return (
    <ul class="rows" aria-label="What would have changed">
      {shown.map(({ decisionId, operation, amount, asset, was, now, violations }) => {
        const decision = byId.get(decisionId)
        const [first] = violations
        return (
          <li class="item item--two" key={decisionId}>
            <span class="item__main">
              <span class="item__name">
                <span class="trim">
                  <Untrusted>{decision === undefined ? operation : nameSubject(decision)}</Untrusted>
                </span>
              </span>
              <span class="item__sub wrap">
                {first === undefined
                  ? `was ${verdictWords[was] ?? was}, now ${verdictWords[now] ?? now}`
                  : capital(describeViolation(first))}
              </span>
            </span>
            <span class="item__end">
              <Amount amount={amount} asset={asset} isVoid={now === 'deny'} />
            </span>
          </li>
        )
      })}
      {trial.changed.length > SHOWN_CHANGES && (
        <li class="item item--two">
          <span class="small faint">and {trial.changed.length - SHOWN_CHANGES} older</span>
        </li>
      )}
    </ul>
  )
}

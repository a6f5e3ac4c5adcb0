/** Reviews, rails, alarms and accounts, for administrators of the deployment. */
import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { FoundAccount, Rail } from '../../client/operations.ts'
import { Amount } from '../components/amount.tsx'
import { FullAddress } from '../components/call.tsx'
import { ActionButton, Dialog, DialogButtons, Field, Setting } from '../components/controls.tsx'
import { Icon, type IconName } from '../components/icon.tsx'
import { Chip, IconGlyph } from '../components/marks.tsx'
import { Empty, Failed, SkeletonRows, toast } from '../components/messages.tsx'
import {
  CardFloatPanel,
  QueuesPanel,
  RefusalsPanel,
  railWords,
  VolumePanel,
} from '../components/operator-figures.tsx'
import { Columns, PageHead, Panel } from '../components/panel.tsx'
import { Untrusted } from '../components/quote.tsx'
import { account } from '../data/account.ts'
import { bursar, isProblem, withProof } from '../data/gateway.ts'
import {
  alarms,
  debts,
  drifts,
  openApplications,
  openReviews,
  openTravelRules,
  rails,
} from '../data/operator.ts'
import { type Resource, useResource } from '../data/resource.ts'
import { formatDecimal, formatUsd } from '../words/money.ts'
import { count, nameChain } from '../words/names.ts'
import { plainText, shortText } from '../words/plain-text.ts'
import { formatDay, formatWhen } from '../words/time.ts'

export function OperatorPage() {
  const role = account.value?.role
  if (role === undefined) return <SkeletonRows rows={4} />
  if (role !== 'admin')
    return (
      <Panel>
        <Empty icon="lock" title="For administrators only">
          Your account has no part in running this deployment.
        </Empty>
      </Panel>
    )
  return <Confirmed />
}

/** The lists themselves need a second factor: it is asked for once, not seven times, and never by surprise. */
function Confirmed() {
  const state = useResource(openReviews)
  const confirm = async () => {
    await withProof(async () => bursar.admin.reviews.list({ limit: 1 }))
    await openReviews.reload()
  }
  const head = <PageHead title="Operator">What waits for your decision, and what moves money here.</PageHead>
  if (state.status === 'loading')
    return (
      <>
        {head}
        <SkeletonRows rows={4} />
      </>
    )
  if (state.status === 'failed' && isProblem(state.error, 'step_up_required'))
    return (
      <>
        {head}
        <Panel>
          <Empty
            icon="lock"
            title="Confirm that it is you"
            action={
              <ActionButton kind="primary" run={confirm} busy="Loading">
                Show what waits
              </ActionButton>
            }
          >
            What belongs to others is shown after your second factor, for five minutes.
          </Empty>
        </Panel>
      </>
    )
  return (
    <>
      {head}
      <Columns
        main={
          <>
            <Reviews />
            <Applications />
            <TravelRules />
            <VolumePanel />
            <RefusalsPanel />
            <Accounts />
          </>
        }
        side={
          <>
            <QueuesPanel />
            <CardFloatPanel />
            <Alarms />
            <Rails />
            <Books />
          </>
        }
      />
    </>
  )
}

/** A panel of a list: its rows, or why there are none. */
function Queue<Value extends object, Item>({
  title,
  subject,
  empty,
  source,
  listItems,
  row,
}: {
  readonly title: string
  readonly subject: string
  readonly empty: string
  readonly source: Resource<Value>
  readonly listItems: (value: Value) => readonly Item[]
  readonly row: (item: Item) => ComponentChildren
}) {
  const state = useResource(source)
  const items = state.status === 'ready' ? listItems(state.value) : []
  const isCut = state.status === 'ready' && 'nextCursor' in state.value && state.value.nextCursor !== null
  return (
    <Panel
      title={title}
      more={items.length > 0 && <Chip kind="warn">{`${items.length}${isCut ? '+' : ''} open`}</Chip>}
      kind={items.length > 0 ? 'ask' : undefined}
      foot={isCut ? 'The newest. Older ones follow as these are decided.' : undefined}
    >
      {state.status === 'loading' && <SkeletonRows rows={1} />}
      {state.status === 'failed' && <Failed subject={subject} error={state.error} retry={source.reload} />}
      {state.status === 'ready' && items.length === 0 && <Quiet>{empty}</Quiet>}
      {items.length > 0 && <ul class="rows">{items.map(row)}</ul>}
    </Panel>
  )
}

function Quiet({ children }: { readonly children: ComponentChildren }) {
  return (
    <p class="panel__body small soft row">
      <Icon name="check" small />
      {children}
    </p>
  )
}

interface Choice<Decision> {
  readonly decision: Decision
  readonly words: string
  readonly isStop?: boolean
}

/** Two decisions with a reason for the record. */
function Decide<Decision extends string>({
  subject,
  choices,
  decide,
}: {
  readonly subject: string
  readonly choices: readonly Choice<Decision>[]
  readonly decide: (decision: Decision, reason: string) => Promise<void>
}) {
  const [chosen, choose] = useState<Choice<Decision> | null>(null)
  const [reason, setReason] = useState('')
  const run = async () => {
    if (chosen === null) return
    await decide(chosen.decision, reason.trim())
    choose(null)
  }
  return (
    <span class="row row--wrap">
      {choices.map((choice) => (
        <button
          class={choice.isStop ? 'btn btn--sm btn--stopline' : 'btn btn--sm'}
          type="button"
          key={choice.decision}
          onClick={() => {
            // A reason to block is none to release.
            setReason('')
            choose(choice)
          }}
        >
          {choice.words}
        </button>
      ))}
      {chosen !== null && (
        <Dialog title={`${chosen.words}: ${subject}`} close={() => choose(null)}>
          <Field label="Reason" of="reason" hint="Kept in the journal, with your name.">
            {(props) => (
              <input
                class="input"
                maxLength={500}
                autofocus
                value={reason}
                onInput={(event) => setReason(event.currentTarget.value)}
                {...props}
              />
            )}
          </Field>
          <DialogButtons close={() => choose(null)}>
            <ActionButton
              kind={chosen.isStop ? 'stop' : 'primary'}
              run={run}
              busy="Deciding"
              disabled={reason.trim() === ''}
            >
              {chosen.words}
            </ActionButton>
          </DialogButtons>
        </Dialog>
      )}
    </span>
  )
}

function Reviews() {
  return (
    <Queue
      title="In review"
      subject="The list of reviews"
      empty="Nothing waits."
      source={openReviews}
      listItems={({ reviews }) => reviews}
      row={(review) => {
        const { id, accountId, direction, amount, asset, usd, counterparty, operation, lists, createdAt } =
          review
        if (review.proofs !== null)
          return <Recovery key={id} {...{ id, accountId, createdAt }} proofs={review.proofs} />
        const isDeposit = direction === 'in'
        const worth = amount && asset ? ` of ${formatDecimal(amount)} ${asset}` : ''
        const party = counterparty === null ? null : <FullAddress address={counterparty} />
        const account = <span class="mono">{accountId}</span>
        const decide = async (decision: 'release' | 'block', reason: string) => {
          await withProof(() => bursar.admin.reviews.decide({ id, decision, reason }))
          await openReviews.reload()
          const released = isDeposit ? 'The deposit is credited.' : 'It may be sent again.'
          toast(decision === 'release' ? released : 'It stays blocked.')
        }
        return (
          <li class="queued stack" key={id}>
            <div class="row row--wide row--wrap">
              <span class="strong">
                {amount && asset ? <Amount amount={amount} asset={asset} /> : operation}
                {usd && <span class="faint small"> {formatUsd(usd)}</span>}{' '}
                <Chip kind="plain">{isDeposit ? 'Deposit' : 'Payment'}</Chip>
              </span>
              <span class="small faint">{formatWhen(createdAt)}</span>
            </div>
            <dl class="facts">
              <dt>From</dt>
              <dd>{isDeposit ? (party ?? 'Not named') : account}</dd>
              <dt>To</dt>
              <dd>{isDeposit ? account : (party ?? 'Not named')}</dd>
              <dt>Because of</dt>
              <dd>{lists.map((list) => list.replaceAll('_', ' ')).join(', ')}</dd>
            </dl>
            <Decide
              subject={`${isDeposit ? 'the deposit' : 'the payment'}${worth}`}
              choices={[
                { decision: 'release', words: 'Release' },
                { decision: 'block', words: 'Block', isStop: true },
              ]}
              decide={decide}
            />
          </li>
        )
      }}
    />
  )
}

const proofWords = {
  code: 'a code to their address',
  passkey: 'their passkey',
  guest: 'only the id of this guest account',
} as const

/** A person who has proved to own an account that an administrator locked. */
function Recovery({
  id,
  accountId,
  createdAt,
  proofs,
}: {
  readonly id: string
  readonly accountId: string
  readonly createdAt: string
  readonly proofs: readonly (keyof typeof proofWords)[]
}) {
  const decide = async (decision: 'release' | 'block', reason: string) => {
    await withProof(() => bursar.admin.reviews.decide({ id, decision, reason }))
    await openReviews.reload()
    toast(decision === 'release' ? 'The account is unlocked, and its keys are paused.' : 'It stays locked.')
  }
  return (
    <li class="queued stack">
      <div class="row row--wide row--wrap">
        <span class="strong">
          Recovery of a locked account <Chip kind="plain">Recovery</Chip>
        </span>
        <span class="small faint">{formatWhen(createdAt)}</span>
      </div>
      <dl class="facts">
        <dt>Account</dt>
        <dd>
          <span class="mono">{accountId}</span>
        </dd>
        <dt>Shown</dt>
        <dd>{proofs.map((proof) => proofWords[proof]).join(' and ')}</dd>
      </dl>
      <Decide
        subject="the account"
        choices={[
          { decision: 'release', words: 'Unlock' },
          { decision: 'block', words: 'Refuse', isStop: true },
        ]}
        decide={decide}
      />
    </li>
  )
}

function Applications() {
  return (
    <Queue
      title="Identities to compare"
      subject="The list of applications"
      empty="No application waits."
      source={openApplications}
      listItems={({ applications }) => applications}
      row={({ id, accountId, level, applicant, hits }) => {
        const decide = async (decision: 'approve' | 'reject', reason: string) => {
          await withProof(() => bursar.admin.kyc.decide({ id, decision, reason }))
          await openApplications.reload()
          toast(decision === 'approve' ? 'The application goes on.' : 'The application is rejected.')
        }
        return (
          <li class="queued stack" key={id}>
            <span class="strong">
              {applicant === null ? (
                'Erased by the applicant'
              ) : (
                <Untrusted>{shortText(applicant.name)}</Untrusted>
              )}
            </span>
            <dl class="facts">
              <dt>Applies for</dt>
              <dd>{level === 'full' ? 'Full' : 'Basic'}</dd>
              {applicant !== null && (
                <>
                  <dt>Born</dt>
                  <dd>{applicant.dateOfBirth ?? 'Not given'}</dd>
                  <dt>Country</dt>
                  <dd>{applicant.country ?? 'Not given'}</dd>
                </>
              )}
              <dt>{hits.length > 0 ? 'Resembles' : 'Why'}</dt>
              <dd>
                {hits.length > 0 ? (
                  <Untrusted>{plainText(hits.join('; '))}</Untrusted>
                ) : (
                  'Differs from earlier applications of the account'
                )}
              </dd>
              <dt>Account</dt>
              <dd class="mono">{accountId}</dd>
            </dl>
            <Decide
              subject="this identity"
              choices={[
                { decision: 'approve', words: 'Another person' },
                { decision: 'reject', words: 'Reject', isStop: true },
              ]}
              decide={decide}
            />
          </li>
        )
      }}
    />
  )
}

function TravelRules() {
  return (
    <Queue
      title="Travel Rule names to compare"
      subject="The list of records"
      empty="No record waits."
      source={openTravelRules}
      listItems={({ records }) => records}
      row={({ id, accountId, destination, names, hits }) => {
        const decide = async (decision: 'approve' | 'reject', reason: string) => {
          await withProof(() => bursar.admin.travelRules.decide({ id, decision, reason }))
          await openTravelRules.reload()
          toast(decision === 'approve' ? 'The account may pay it.' : 'The account may not pay it.')
        }
        return (
          <li class="queued stack" key={id}>
            <FullAddress address={destination} />
            <dl class="facts">
              <dt>Names</dt>
              <dd>
                {names === null ? (
                  'Erased by the sender'
                ) : (
                  <Untrusted>{plainText(names.join('; '))}</Untrusted>
                )}
              </dd>
              <dt>Resembles</dt>
              <dd>
                <Untrusted>{plainText(hits.join('; '))}</Untrusted>
              </dd>
              <dt>Account</dt>
              <dd class="mono">{accountId}</dd>
            </dl>
            <Decide
              subject="this payee"
              choices={[
                { decision: 'approve', words: 'Another party' },
                { decision: 'reject', words: 'Reject', isStop: true },
              ]}
              decide={decide}
            />
          </li>
        )
      }}
    />
  )
}

const SEARCH_AFTER_MS = 300

function Accounts() {
  const [search, setSearch] = useState('')
  const [found, setFound] = useState<readonly FoundAccount[] | null>(null)
  const [error, setError] = useState<unknown>(null)
  const read = async (text: string) => {
    try {
      const { accounts } = await bursar.admin.accounts.list({
        limit: 20,
        ...(text === '' ? {} : { search: text }),
      })
      setFound(accounts)
      setError(null)
    } catch (problem) {
      setError(problem)
    }
  }
  useEffect(() => {
    const timer = setTimeout(() => void read(search.trim()), search === '' ? 0 : SEARCH_AFTER_MS)
    return () => clearTimeout(timer)
  }, [search])
  return (
    <Panel title="Accounts">
      <div class="panel__body">
        <Field label="Search by name or id">
          {(props) => (
            <input
              class="input"
              type="search"
              autoComplete="off"
              maxLength={80}
              value={search}
              onInput={(event) => setSearch(event.currentTarget.value)}
              {...props}
            />
          )}
        </Field>
      </div>
      {error !== null && (
        <Failed subject="The list of accounts" error={error} retry={() => void read(search.trim())} />
      )}
      {error === null && found === null && <SkeletonRows rows={2} />}
      {found?.length === 0 && <p class="panel__body small soft">No account has this name or id.</p>}
      <ul class="rows">
        {found?.map((one) => (
          <AccountRow key={one.id} found={one} reload={() => read(search.trim())} />
        ))}
      </ul>
    </Panel>
  )
}

const kycLevels: Readonly<Record<string, string>> = {
  none: 'not verified',
  basic: 'verified: basic',
  full: 'verified: full',
}

function AccountRow({
  found,
  reload,
}: {
  readonly found: FoundAccount
  readonly reload: () => Promise<void>
}) {
  const { id, role, guest, kycLevel, locked, createdAt } = found
  const name = shortText(found.displayName)
  const [isLocking, lock] = useState(false)
  const run = async (isLock: boolean) => {
    const { lock: locks, unlock } = bursar.admin.accounts
    await withProof<unknown>(() => (isLock ? locks({ id }) : unlock({ id })))
    lock(false)
    await reload()
    toast(isLock ? 'The account is locked.' : 'The account is unlocked.')
  }
  const kind = guest ? 'Guest' : role === 'admin' ? 'Administrator' : 'Owner'
  return (
    <li>
      <div class="item">
        <IconGlyph name={locked ? 'lock' : 'person'} kind={locked ? 'bad' : undefined} />
        <span class="item__main">
          <span class="item__name">
            <span class="trim">
              <Untrusted>{name}</Untrusted>
            </span>
            {locked && (
              <Chip kind="bad" icon="lock">
                Locked
              </Chip>
            )}
          </span>
          <span class="item__sub">
            {kind}, {kycLevels[kycLevel] ?? kycLevel} · since {formatDay(createdAt)} ·{' '}
            <span class="mono">{id}</span>
          </span>
        </span>
        {locked ? (
          <ActionButton size="sm" run={() => run(false)} label={`Unlock the account of ${name}`}>
            Unlock
          </ActionButton>
        ) : (
          id !== account.value?.id && (
            <button
              class="btn btn--sm btn--quiet"
              type="button"
              aria-label={`Lock the account of ${name}`}
              onClick={() => lock(true)}
            >
              Lock
            </button>
          )
        )}
      </div>
      {isLocking && (
        <Dialog title="Lock this account?" close={() => lock(false)}>
          <p>
            Every device of <Untrusted>{name}</Untrusted> is signed out, and its agents, keys and cards stop.
            Only an administrator can unlock it.
          </p>
          <DialogButtons close={() => lock(false)}>
            <ActionButton kind="stop" icon="lock" run={() => run(true)} busy="Locking">
              Lock the account
            </ActionButton>
          </DialogButtons>
        </Dialog>
      )}
    </li>
  )
}

function Rails() {
  const state = useResource(rails)
  const shown = state.status === 'ready' ? state.value.rails : []
  const off = shown.filter(({ status }) => status !== 'enabled').length
  return (
    <Panel
      title="Rails"
      more={off > 0 && <Chip kind="bad">{count(off, 'rail')} off</Chip>}
      foot="A rail that is off moves no money, for any account. What was already sent goes on."
    >
      {state.status === 'loading' && <SkeletonRows rows={4} />}
      {state.status === 'failed' && (
        <Failed subject="The list of rails" error={state.error} retry={rails.reload} />
      )}
      <div class="panel__body">
        {shown.map((rail) => (
          <RailSwitch key={rail.id} rail={rail} />
        ))}
      </div>
    </Panel>
  )
}

function RailSwitch({ rail }: { readonly rail: Rail }) {
  const { id, status, reason } = rail
  const [isStopping, stop] = useState(false)
  const [words, setWords] = useState('')
  const become = async (enabled: boolean, why: string) => {
    await withProof(() => bursar.rails.controls.set({ id, enabled, ...(why === '' ? {} : { reason: why }) }))
    stop(false)
    setWords('')
    await rails.reload()
    toast(`${railWords[id]}: ${enabled ? 'on' : 'off'}.`)
  }
  const change = async (isOn: boolean) => {
    if (isOn) await become(true, '')
    else stop(true)
  }
  const hint = status === 'unknown' ? 'Unknown: its switch cannot be read.' : reason
  return (
    <>
      <Setting
        label={railWords[id]}
        hint={hint === null ? undefined : <Untrusted>{plainText(hint)}</Untrusted>}
        isOn={status === 'enabled'}
        change={change}
      />
      {isStopping && (
        <Dialog title={`Switch off: ${railWords[id]}?`} close={() => stop(false)}>
          <p>No account can use it until it is switched on again. What was already sent goes on.</p>
          <Field label="Reason" hint="Shown to everybody who is refused. May be empty.">
            {(props) => (
              <input
                class="input"
                maxLength={200}
                autofocus
                value={words}
                onInput={(event) => setWords(event.currentTarget.value)}
                {...props}
              />
            )}
          </Field>
          <DialogButtons close={() => stop(false)}>
            <ActionButton
              kind="stop"
              icon="stop"
              run={() => become(false, words.trim())}
              busy="Switching off"
            >
              Switch it off
            </ActionButton>
          </DialogButtons>
        </Dialog>
      )}
    </>
  )
}

function Alarms() {
  return (
    <Queue
      title="Alarms"
      subject="The list of alarms"
      empty="Nothing contradicts the books."
      source={alarms}
      listItems={(value) => value.alarms}
      row={({ domain, objectId, reason, times, lastSeenAt }) => {
        const resolve = async (_decision: 'resolve', note: string) => {
          await withProof(() => bursar.admin.alarms.resolve({ domain, objectId, reason, note }))
          await alarms.reload()
          toast('The alarm is resolved.')
        }
        return (
          <li class="queued stack" key={`${domain}${objectId}${reason}`}>
            <span class="strong">{reason.replaceAll('_', ' ')}</span>
            <span class="small faint">
              {domain} · {count(times, 'time')} · last {formatWhen(lastSeenAt)} ·{' '}
              <span class="mono wrap">{objectId}</span>
            </span>
            <Decide
              subject="this alarm"
              choices={[{ decision: 'resolve', words: 'Resolve' }]}
              decide={resolve}
            />
          </li>
        )
      }}
    />
  )
}

interface Difference {
  readonly key: string
  readonly icon: IconName
  readonly title: string
  readonly words: string
  readonly amount: string
  readonly asset: string
}

/** Where the chain or a person owes what the books say. */
function Books() {
  const differences = useResource(drifts)
  const owed = useResource(debts)
  const rows: Difference[] = []
  if (differences.status === 'ready') {
    for (const { accountId, chain, token, booked, onChain } of differences.value.drifts)
      rows.push({
        key: `drift ${accountId} ${chain} ${token}`,
        icon: 'activity',
        title: `${nameChain(chain)} holds ${onChain} ${token}`,
        words: `Booked · ${accountId}`,
        amount: booked,
        asset: token,
      })
    for (const { accountId, chain, token, frozen } of differences.value.shortfalls)
      rows.push({
        key: `shortfall ${accountId} ${chain} ${token}`,
        icon: 'freeze',
        title: `Frozen: missing on ${nameChain(chain)}`,
        words: accountId,
        amount: frozen,
        asset: token,
      })
  }
  if (owed.status === 'ready')
    for (const debt of owed.value.debts)
      rows.push({
        key: debt.id,
        icon: 'warning',
        title: `Debt of a ${debt.kind}`,
        words: `${debt.accountId} · since ${formatDay(debt.createdAt)}`,
        amount: debt.owed,
        asset: debt.asset,
      })
  const failed = [[differences, drifts] as const, [owed, debts] as const].find(
    ([state]) => state.status === 'failed',
  )
  const isReady = differences.status === 'ready' && owed.status === 'ready'
  return (
    <Panel title="Books and chain">
      {failed?.[0].status === 'failed' && (
        <Failed subject="The comparison" error={failed[0].error} retry={failed[1].reload} />
      )}
      {!isReady && failed === undefined && <SkeletonRows rows={1} />}
      {isReady && rows.length === 0 && <Quiet>They agree, and no debt is open.</Quiet>}
      <ul class="rows">
        {rows.map(({ key, icon, title, words, amount, asset }) => (
          <li key={key}>
            <div class="item">
              <IconGlyph name={icon} kind="bad" />
              <span class="item__main">
                <span class="item__name">{title}</span>
                <span class="item__sub wrap">{words}</span>
              </span>
              <Amount amount={amount} asset={asset} />
            </div>
          </li>
        ))}
      </ul>
    </Panel>
  )
}

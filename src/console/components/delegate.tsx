/** Delegates a part of an agent's budget in three steps: to whom and for what, how much and until when, and what comes of it. */
import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import type { Agent, AgentsDelegateResponse, Policy } from '../../client/operations.ts'
import { BursarProblem } from '../../client/problem.ts'
import { deployment } from '../data/account.ts'
import { now } from '../data/clock.ts'
import { bursar, listIssues, withProof } from '../data/gateway.ts'
import { agentById, agents, treeById } from '../data/money.ts'
import { splitLeft } from '../words/delegation.ts'
import {
  computeEnd,
  DELEGATE,
  type DelegationDraft,
  type DelegationField,
  type DelegationProblems,
  type DelegationStep,
  fieldsOfStep,
  findDelegationProblems,
  findField,
  keepScopes,
  spans,
  toDelegatedPolicy,
  toDelegation,
} from '../words/delegation-draft.ts'
import { addDecimals, compareDecimals, formatUsd, isAmount, subtractDecimals } from '../words/money.ts'
import { shortText } from '../words/plain-text.ts'
import { capital, describeScope, describeScopes } from '../words/policy.ts'
import { formatMoment } from '../words/time.ts'
import { Bar, BarLegend } from './burn.tsx'
import { ActionButton, Copy, Field, Form, MoneyInput, Segments } from './controls.tsx'
import { Icon } from './icon.tsx'
import { AgentGlyph } from './marks.tsx'
import { Untrusted } from './quote.tsx'
import { PolicyWords } from './sentence.tsx'
import { Steps } from './steps.tsx'

const steps = [
  ['what', 'Who and what for'],
  ['money', 'How much'],
  ['review', 'Review'],
] as const satisfies readonly (readonly [DelegationStep, string])[]

/** @property draft is kept by the page, so that leaving loses nothing. @property done the key was made, and begins a new draft */
export function Delegate({
  agent,
  policy,
  draft,
  change,
  close,
  done,
}: {
  readonly agent: Agent
  readonly policy: Policy
  readonly draft: DelegationDraft
  readonly change: (draft: DelegationDraft) => void
  readonly close: () => void
  readonly done: () => void
}) {
  const [step, setStep] = useState<DelegationStep>('what')
  const [isTried, setTried] = useState(false)
  const [refused, refuse] = useState<DelegationProblems>({})
  const [made, setMade] = useState<{ readonly answer: AgentsDelegateResponse; readonly name: string } | null>(
    null,
  )
  const heading = useRef<HTMLHeadingElement>(null)
  const form = useRef<HTMLDivElement>(null)
  useEffect(() => heading.current?.focus({ preventScroll: true }), [])
  const name = shortText(agent.name)
  const parent = { agentId: agent.agentId, scopes: agent.scopes, policy }
  const focusWrong = () =>
    setTimeout(() => form.current?.querySelector<HTMLElement>('[aria-invalid=true]')?.focus())
  const go = (to: DelegationStep) => {
    setStep(to)
    setTried(false)
    scrollTo(0, 0)
    heading.current?.focus({ preventScroll: true })
  }
  const set = (part: Partial<DelegationDraft>) => {
    change({ ...draft, ...part })
    // What is entered anew is no longer what was refused.
    const changed = Object.keys(part)
    const about = (field: string) =>
      changed.includes(field) ||
      (field === 'until' && changed.includes('span')) ||
      (field === 'amount' && changed.includes('isEarmarked'))
    refuse(Object.fromEntries(Object.entries(refused).filter(([field]) => !about(field))))
  }
  const problems = findDelegationProblems(draft, { now: now(), parentEnd: agent.expiresAt })
  const findProblem = (field: DelegationField) => refused[field] ?? (isTried ? problems[field] : undefined)
  const isWrong = (one: DelegationStep) => fieldsOfStep[one].some((field) => problems[field] !== undefined)
  const move = (to: DelegationStep) => {
    if (!isWrong(step)) return go(to)
    setTried(true)
    focusWrong()
  }
  const create = async () => {
    const wrong = steps.find(([one]) => isWrong(one))?.[0]
    const end = computeEnd(draft, { now: now(), parentEnd: agent.expiresAt })
    if (wrong !== undefined || end === null) {
      setStep(wrong ?? 'money')
      setTried(true)
      focusWrong()
      return
    }
    try {
      const answer = await withProof(() => bursar.agents.delegate(toDelegation(draft, parent, end)))
      setMade({ answer, name: draft.name.trim() })
      done()
      void Promise.all([treeById(agent.agentId).reload(), agentById(agent.agentId).reload(), agents.reload()])
      scrollTo(0, 0)
      heading.current?.focus({ preventScroll: true })
    } catch (error) {
      const placed = placeRefusal(error, agent)
      const [first] = Object.keys(placed)
      const place = steps.find(([one]) => fieldsOfStep[one].some((field) => field === first))?.[0]
      if (place === undefined) throw error
      refuse(placed)
      setStep(place)
      focusWrong()
    }
  }
  const shared: StepProps = { draft, set, findProblem, agent, name, policy }
  return (
    <>
      <div class="pagehead">
        <div class="row grow">
          <AgentGlyph id={made?.answer.agentId ?? agent.agentId} name={made?.name ?? agent.name} size="lg" />
          <div class="pagehead__text">
            <h1 class="wrap" ref={heading} tabIndex={-1}>
              {made === null ? (
                <>
                  Delegate from <Untrusted>{name}</Untrusted>
                </>
              ) : (
                <>
                  <Untrusted>{shortText(made.name)}</Untrusted> is ready
                </>
              )}
            </h1>
            <p class="soft">
              {made === null
                ? 'Another agent gets a part of this budget, under its own limits and all limits above it.'
                : 'It spends until its budget or its time is over, or until you stop it.'}
            </p>
          </div>
        </div>
      </div>
      {made !== null ? (
        <Made answer={made.answer} close={close} />
      ) : (
        <>
          <Steps steps={steps} current={step} go={go} />
          <div ref={form}>
            <Form>
              {step === 'what' && <What {...shared} close={close} next={() => move('money')} />}
              {step === 'money' && (
                <HowMuch {...shared} back={() => go('what')} next={() => move('review')} />
              )}
              {step === 'review' && <Review {...shared} back={() => go('money')} create={create} />}
            </Form>
          </div>
        </>
      )}
    </>
  )
}

/** Places what the gateway refused at the fields that it is about; nothing if any of it is about none. */
function placeRefusal(error: unknown, agent: Agent): DelegationProblems {
  if (error instanceof BursarProblem && error.code === 'policy_denied') {
    const { agentId, remaining } = error.violations[0] ?? {}
    const holder = [...agent.path, agent].find((one) => one.agentId === agentId) ?? agent
    const left = remaining == null ? 'less' : `only ${formatUsd(remaining)}`
    return {
      amount: `${shortText(holder.name)} has ${left} left to set aside. Give less, or choose “Up to this much”.`,
    }
  }
  const issues = listIssues(error).map(({ path, words }) => [findField(path), words] as const)
  return issues.some(([field]) => field === undefined) ? {} : Object.fromEntries(issues)
}

interface StepProps {
  readonly draft: DelegationDraft
  readonly set: (part: Partial<DelegationDraft>) => void
  readonly findProblem: (field: DelegationField) => string | undefined
  readonly agent: Agent
  /** Of the agent, for a line. */
  readonly name: string
  readonly policy: Policy
}

function StepForm({
  title,
  back,
  submit,
  next,
  children,
}: {
  readonly title: string
  readonly back: ComponentChildren
  readonly submit: () => void
  readonly next: ComponentChildren
  readonly children: ComponentChildren
}) {
  return (
    <form
      class="panel"
      noValidate
      onSubmit={(event) => {
        event.preventDefault()
        submit()
      }}
    >
      <h2 class="hide">{title}</h2>
      <div class="panel__body stack stack--loose">{children}</div>
      <div class="actionbar">
        {back}
        {next}
      </div>
    </form>
  )
}

function Back({ run, words = 'Back' }: { readonly run: () => void; readonly words?: string }) {
  return (
    <button class="btn btn--quiet" type="button" onClick={run}>
      {words}
    </button>
  )
}

function Continue() {
  return (
    <button class="btn btn--primary" type="submit">
      Continue
    </button>
  )
}

function What({
  draft,
  set,
  findProblem,
  agent,
  name,
  close,
  next,
}: StepProps & { readonly close: () => void; readonly next: () => void }) {
  return (
    <StepForm
      title="Who and what for"
      back={<Back run={close} words="Cancel" />}
      submit={next}
      next={<Continue />}
    >
      <div class="formgrid">
        <Field label="Name" hint="You see it on every payment it makes." error={findProblem('name')}>
          {(props) => (
            <input
              class="input"
              maxLength={80}
              autoComplete="off"
              value={draft.name}
              onInput={(event) => set({ name: event.currentTarget.value })}
              {...props}
            />
          )}
        </Field>
        <Field
          label={
            <>
              Task <span class="faint">(optional)</span>
            </>
          }
          hint="Labels all its payments, such as report-17."
          error={findProblem('task')}
        >
          {(props) => (
            <input
              class="input"
              maxLength={64}
              autoComplete="off"
              value={draft.task}
              onInput={(event) => set({ task: event.currentTarget.value })}
              {...props}
            />
          )}
        </Field>
      </div>
      <Access draft={draft} set={set} scopes={agent.scopes} name={name} />
    </StepForm>
  )
}

/** Scopes of the parent, of which the child gets those that stay ticked. */
function Access({
  draft: { withheld },
  set,
  scopes,
  name,
}: {
  readonly draft: DelegationDraft
  readonly set: StepProps['set']
  readonly scopes: readonly string[]
  readonly name: string
}) {
  const { see, change, move } = describeScopes(keepScopes(scopes, withheld))
  const given = [see, change, move].filter((words) => words !== '').join(' · ')
  return (
    <details class="fold" open={withheld.some((scope) => scope !== DELEGATE)}>
      <summary class="delegate__fold">
        <span class="linkbtn">What it may do</span>
        <span class="small soft">{given === '' ? 'Nothing' : given}</span>
      </summary>
      <fieldset class="stack stack--tight">
        <legend class="small soft">
          It gets what <Untrusted>{name}</Untrusted> may do itself, or less.
        </legend>
        <div class="ticks ticks--wide">
          {scopes.map((scope) => (
            <label class="check" key={scope}>
              <input
                type="checkbox"
                checked={!withheld.includes(scope)}
                onChange={(event) =>
                  set({
                    withheld: event.currentTarget.checked
                      ? withheld.filter((one) => one !== scope)
                      : [...withheld, scope],
                  })
                }
              />
              {capital(describeScope(scope))}
            </label>
          ))}
        </div>
      </fieldset>
    </details>
  )
}

function HowMuch({
  draft,
  set,
  findProblem,
  agent,
  name,
  policy,
  back,
  next,
}: StepProps & { readonly back: () => void; readonly next: () => void }) {
  const single = formatUsd(String(policy.perTransaction.max))
  const until = findProblem('until')
  return (
    <StepForm title="How much" back={<Back run={back} />} submit={next} next={<Continue />}>
      <div class="formgrid">
        <Field label="In total" hint="It ends with this: nothing resets it." error={findProblem('amount')}>
          {(props) => (
            <MoneyInput
              value={draft.amount}
              onInput={(event) => set({ amount: event.currentTarget.value.trim() })}
              {...props}
            />
          )}
        </Field>
        <Field
          label={
            <>
              At a time <span class="faint">(optional)</span>
            </>
          }
          hint={
            <>
              <Untrusted>{name}</Untrusted> may spend {single} at a time.
            </>
          }
          error={findProblem('each')}
        >
          {(props) => (
            <MoneyInput
              value={draft.each}
              onInput={(event) => set({ each: event.currentTarget.value.trim() })}
              {...props}
            />
          )}
        </Field>
      </div>
      <Until draft={draft} set={set} problem={until} agent={agent} name={name} />
      <Earmark draft={draft} set={set} name={name} />
      <After draft={draft} agent={agent} name={name} />
    </StepForm>
  )
}

/** A chosen span, or a moment. The problem stands at whichever is shown. */
function Until({
  draft,
  set,
  problem,
  agent,
  name,
}: Pick<StepProps, 'draft' | 'set' | 'agent' | 'name'> & { readonly problem: string | undefined }) {
  const id = useId()
  const end =
    agent.expiresAt === null ? null : (
      <>
        <Untrusted>{name}</Untrusted> ends on {formatMoment(agent.expiresAt)}, and this with it.
      </>
    )
  return (
    <div class="stack stack--tight">
      <span class="label" id={`${id}-label`}>
        It ends after
      </span>
      <Segments
        label="It ends after"
        options={spans.map(([span, words]) => [span, words] as const)}
        value={draft.span}
        choose={(span) => set({ span })}
      />
      {draft.span === 'other' ? (
        <Field label="At" hint={end ?? 'In your time zone.'} error={problem}>
          {(props) => (
            <input
              class="input delegate__until"
              type="datetime-local"
              value={draft.until}
              onInput={(event) => set({ until: event.currentTarget.value })}
              {...props}
            />
          )}
        </Field>
      ) : problem === undefined ? (
        end !== null && <p class="field__hint">{end}</p>
      ) : (
        <p class="field__error" role="alert">
          <Icon name="warning" small />
          {problem}
        </p>
      )}
    </div>
  )
}

function Earmark({ draft, set, name }: Pick<StepProps, 'draft' | 'set' | 'name'>) {
  const group = useId()
  const options = [
    [true, 'Set it aside', `Only it can spend this. What is left returns to ${name} when it ends.`],
    [false, 'Up to this much', `It shares what ${name} has left: whoever spends first has it.`],
  ] as const
  return (
    <fieldset>
      <legend class="label delegate__legend">Is the money kept for it?</legend>
      <div class="presets presets--two">
        {options.map(([isEarmarked, title, words]) => (
          <label class="preset" key={title}>
            <input
              type="radio"
              name={group}
              checked={draft.isEarmarked === isEarmarked}
              onChange={() => set({ isEarmarked })}
            />
            <b>{title}</b>
            <bdi>{words}</bdi>
          </label>
        ))}
      </div>
    </fieldset>
  )
}

/** What the parent has left once the key is made. */
function After({ draft, agent, name }: Pick<StepProps, 'draft' | 'agent' | 'name'>) {
  const { usage, setAside } = agent
  if (usage.remaining === null) return null
  const more = draft.isEarmarked && isAmount(draft.amount) ? draft.amount : '0'
  const { left, aside } = splitLeft(usage.remaining, addDecimals(setAside, more))
  const isOver = compareDecimals(addDecimals(setAside, more), usage.remaining) > 0
  const limit = addDecimals(usage.used, usage.remaining)
  return (
    <div class="delegate__after stack stack--tight" role="status">
      <span class="stat__name">
        <span class="trim">
          Then <Untrusted>{name}</Untrusted> has today
        </span>
      </span>
      <Bar
        left={left}
        aside={aside}
        limit={limit}
        label={`${formatUsd(left)} left, ${formatUsd(aside)} set aside, ${formatUsd(usage.used)} spent of ${formatUsd(limit)}`}
      />
      <BarLegend
        parts={[
          ['left', 'Left', left],
          ['aside', 'Set aside', aside],
          ['spent', 'Spent', usage.used],
        ]}
      />
      {isOver && (
        <p class="small soft">
          That is {formatUsd(subtractDecimals(addDecimals(setAside, more), usage.remaining))} more than it has
          left today.
        </p>
      )}
    </div>
  )
}

const proofs = [
  ['bearer', 'A key, shown once', 'For anything that can send a header.'],
  ['own_key', 'Its own key pair', 'It signs each request. Nothing secret leaves it.'],
] as const

function Review({
  draft,
  set,
  findProblem,
  agent,
  name,
  policy,
  back,
  create,
}: StepProps & { readonly back: () => void; readonly create: () => Promise<void> }) {
  const group = useId()
  const end = computeEnd(draft, { now: now(), parentEnd: agent.expiresAt })
  const { see, change: may, move } = describeScopes(keepScopes(agent.scopes, draft.withheld))
  const above = [...agent.path, agent].map((one) => shortText(one.name)).join(' › ')
  const facts: readonly (readonly [string, ComponentChildren])[] = [
    ['Name', <Untrusted>{shortText(draft.name.trim())}</Untrusted>],
    ['Below', <bdi>{above}</bdi>],
    ...(draft.task.trim() === '' ? [] : [['Task', <Untrusted>{draft.task.trim()}</Untrusted>] as const]),
    [
      'Budget',
      <>
        <b class="num">{formatUsd(draft.amount)}</b>{' '}
        {draft.isEarmarked
          ? `in total, set aside from ${name}`
          : 'in total at most, out of what is left above'}
      </>,
    ],
    ['Until', end === null ? 'Not said' : formatMoment(end.toISOString())],
    ...(see === '' ? [] : [['May see', see] as const]),
    ...(may === '' ? [] : [['May change', may] as const]),
    ['May move', move === '' ? 'Nothing' : move],
  ]
  return (
    <StepForm
      title="Review"
      back={<Back run={back} />}
      submit={() => {}}
      next={
        <ActionButton kind="primary" run={create} busy="Creating">
          Create the key
        </ActionButton>
      }
    >
      <dl class="facts delegate__facts">
        {facts.flatMap(([fact, value]) => [
          <dt key={`${fact} name`}>{fact}</dt>,
          <dd key={fact}>{value}</dd>,
        ])}
      </dl>
      <div class="stack stack--tight delegate__rules">
        <h3>Its own limits</h3>
        <PolicyWords policy={{ ...policy, ...toDelegatedPolicy(draft, { ...agent, policy }) }} />
        <p class="small soft">
          The limits of <bdi>{above}</bdi> hold too, and each payment counts on them.
        </p>
      </div>
      <fieldset>
        <legend class="label delegate__legend">How it proves who it is</legend>
        <div class="presets presets--two">
          {proofs.map(([proof, title, words]) => (
            <label class="preset" key={proof}>
              <input
                type="radio"
                name={group}
                checked={draft.proof === proof}
                onChange={() => set({ proof })}
              />
              <b>{title}</b>
              {words}
            </label>
          ))}
        </div>
      </fieldset>
      {draft.proof === 'own_key' && (
        <Field
          label="Public key"
          hint={
            <>
              Ed25519, base64url. <code>npx bursar agent new --out agent.json</code> prints it.
            </>
          }
          error={findProblem('publicKey')}
        >
          {(props) => (
            <input
              class="input mono"
              maxLength={64}
              autoComplete="off"
              spellcheck={false}
              value={draft.publicKey}
              onInput={(event) => set({ publicKey: event.currentTarget.value })}
              {...props}
            />
          )}
        </Field>
      )}
    </StepForm>
  )
}

const uses = [
  ['mcp', 'Claude Code'],
  ['program', 'A program'],
  ['curl', 'Try it'],
] as const

function Made({
  answer: { key, agentId },
  close,
}: {
  readonly answer: AgentsDelegateResponse
  readonly close: () => void
}) {
  const [use, choose] = useState<(typeof uses)[number][0]>('mcp')
  const { origin } = deployment
  const commands = {
    mcp: `claude mcp add --transport http bursar ${origin}/mcp --header 'Authorization: Bearer ${key}'`,
    program: `BURSAR_URL=${origin} BURSAR_API_KEY=${key} python research.py`,
    curl: `curl ${origin}/api/agents/self -H 'Authorization: Bearer ${key}'`,
  }
  return (
    <section class="panel" aria-label="Its key">
      <div class="panel__body stack stack--loose">
        {key == null ? (
          <div class="stack stack--tight">
            <h2>It signs with its own key</h2>
            <Copy text={`npx bursar mcp --url ${origin} --key agent.json`} what="the command" />
            <p class="soft small">Run this where the agent and its key file are.</p>
          </div>
        ) : (
          <>
            <div class="stack stack--tight">
              <h2>Its key</h2>
              <Copy text={key} what="the key" />
              <p class="soft small">
                This is the only time that it is shown. Who has it can spend within the limits, so keep it as
                you keep a password.
              </p>
            </div>
            <div class="stack stack--tight">
              <h2>Use it</h2>
              <Segments label="Where it is used" options={uses} value={use} choose={choose} />
              <Copy text={commands[use]} what="the command" />
            </div>
          </>
        )}
      </div>
      <div class="actionbar">
        <Link class="btn btn--quiet" href={`/agents/${agentId}`}>
          Open its page
        </Link>
        <button class="btn btn--primary" type="button" onClick={close}>
          Done
        </button>
      </div>
    </section>
  )
}

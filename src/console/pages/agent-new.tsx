/** A new agent in three steps: who it is, what it may do, and how it connects. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import type { Agent } from '../../client/operations.ts'
import { ConnectCommands } from '../components/connect-commands.tsx'
import { ActionButton, Copy, Field, Segments } from '../components/controls.tsx'
import { Icon } from '../components/icon.tsx'
import { toast } from '../components/messages.tsx'
import { useTitle } from '../components/panel.tsx'
import { PolicyEditor } from '../components/policy-editor.tsx'
import { Untrusted } from '../components/quote.tsx'
import { PolicyWords } from '../components/sentence.tsx'
import { account, deployment } from '../data/account.ts'
import { bursar, withProof } from '../data/gateway.ts'
import { agentById, agents } from '../data/money.ts'
import { forgetPlannedAgent, planAgent } from '../data/planned-agent.ts'
import { loadedValue, useResource } from '../data/resource.ts'
import { onEvent } from '../data/stream.ts'
import { plainText, shortText } from '../words/plain-text.ts'
import { describeScopes } from '../words/policy.ts'
import {
  draftOfPreset,
  type PolicyDraft,
  policyOf,
  presets,
  readPolicy,
  scopesOf,
} from '../words/policy-draft.ts'

type Step = 'who' | 'policy' | 'connect'

const steps = [
  ['who', 'Who it is'],
  ['policy', 'What it may do'],
  ['connect', 'How it connects'],
] as const

/** Agents whose past a new policy is tried on. */
const MAX_TRIED = 4

export function AgentNewPage() {
  useTitle('New agent')
  const [step, go] = useState<Step>('who')
  const [name, rename] = useState('My agent')
  const [draft, change] = useState<PolicyDraft>(draftOfPreset(presets[0]))
  const keys = loadedValue(useResource(agents))?.keys ?? []
  const heading = useRef<HTMLHeadingElement>(null)
  const move = (to: Step) => {
    go(to)
    scrollTo(0, 0)
    heading.current?.focus({ preventScroll: true })
  }
  const at = steps.findIndex(([one]) => one === step)
  return (
    <>
      <div class="pagehead">
        <div class="pagehead__text">
          <h1 ref={heading} tabIndex={-1}>
            New agent
          </h1>
        </div>
      </div>
      <ol class="steps">
        {steps.map(([one, words], position) => (
          <li key={one} class={position < at ? 'is-done' : undefined}>
            <button
              type="button"
              aria-current={one === step ? 'step' : undefined}
              disabled={position > at}
              onClick={() => move(one)}
            >
              <i>{position + 1}</i>
              <span>{words}</span>
            </button>
          </li>
        ))}
      </ol>
      {step === 'who' && <Who name={name} rename={rename} next={() => move('policy')} />}
      {step === 'policy' && (
        <PolicyEditor
          draft={draft}
          change={change}
          base={null}
          keyIds={keys.slice(0, MAX_TRIED).map(({ agentId }) => agentId)}
          name={name}
          back={
            <button class="btn btn--quiet" type="button" onClick={() => move('who')}>
              Back
            </button>
          }
          save={async () => move('connect')}
          saveWords="Continue"
        />
      )}
      {step === 'connect' && <Connect name={name} draft={draft} back={() => move('policy')} />}
    </>
  )
}

function Who({
  name,
  rename,
  next,
}: {
  readonly name: string
  readonly rename: (name: string) => void
  readonly next: () => void
}) {
  const isEmpty = name.trim() === ''
  return (
    <form
      class="panel"
      onSubmit={(event) => {
        event.preventDefault()
        if (!isEmpty) next()
      }}
    >
      <h2 class="hide">Who it is</h2>
      <div class="panel__body stack stack--loose">
        <Field
          label="Name"
          hint="You see it on every payment it makes."
          error={isEmpty ? 'Give it a name that you recognize.' : undefined}
        >
          {(props) => (
            <input
              class="input"
              maxLength={60}
              autoComplete="off"
              autofocus
              value={name}
              onFocus={(event) => event.currentTarget.select()}
              onInput={(event) => rename(event.currentTarget.value)}
              {...props}
            />
          )}
        </Field>
      </div>
      <div class="actionbar">
        <Link class="btn btn--quiet" href="/agents">
          Cancel
        </Link>
        <button class="btn btn--primary" type="submit" disabled={isEmpty}>
          Continue
        </button>
      </div>
    </form>
  )
}

type Way = 'oauth' | 'signed' | 'api_key'

const ways = [
  ['oauth', 'OAuth'],
  ['signed', 'Own key'],
  ['api_key', 'API key'],
] as const

function Connect({
  name,
  draft,
  back,
}: {
  readonly name: string
  readonly draft: PolicyDraft
  readonly back: () => void
}) {
  const [way, choose] = useState<Way>('oauth')
  const arrived = useArrival()
  const accountId = account.value?.id
  useEffect(() => {
    if (accountId !== undefined && arrived === null && way !== 'api_key')
      planAgent({ accountId, name, draft })
    return forgetPlannedAgent
  }, [accountId, arrived, way, name, draft])
  return (
    <section class="panel" aria-labelledby="connect">
      <div class="panel__head">
        <h2 id="connect">How it connects</h2>
        <Segments label="Way to connect" options={ways} value={way} choose={choose} />
      </div>
      <div class="panel__body stack stack--loose">
        {way === 'oauth' && (
          <>
            <div class="stack stack--tight">
              <h3>1. Run this where the agent runs</h3>
              <ConnectCommands />
            </div>
            <div class="stack stack--tight">
              <h3>2. Say yes on the page that opens</h3>
              <p class="soft small">
                What you have just chosen is filled in there, as far as the agent asks for it. This page shows
                what it really got.
              </p>
            </div>
          </>
        )}
        {way === 'signed' && (
          <div class="stack stack--tight">
            <h3>Run this where the agent runs</h3>
            <Copy
              text={`npx bursar agent register --url ${deployment.origin} --name ${quoted(name)} --out agent.json`}
              what="the command"
            />
            <p class="soft small">
              The agent makes a key that never leaves its machine, and shows you a link to say yes. What you
              have just chosen is filled in there.
            </p>
          </div>
        )}
        {way === 'api_key' && <ApiKey name={name} draft={draft} />}
        {way !== 'api_key' && <Waiting arrived={arrived} name={name} draft={draft} />}
      </div>
      <div class="actionbar">
        <button class="btn btn--quiet" type="button" onClick={back}>
          Back
        </button>
        <Link class="btn btn--primary" href={arrived === null ? '/agents' : `/agents/${arrived.agentId}`}>
          Done
        </Link>
      </div>
    </section>
  )
}

/** A name for a POSIX shell: one word, whatever stands in it. */
function quoted(name: string): string {
  return `'${plainText(name.trim()).replaceAll("'", `'\\''`)}'`
}

/** The agent that connects while the page is open; null until one does. */
function useArrival(): Agent | null {
  const [arrived, set] = useState<Agent | null>(null)
  useEffect(
    () =>
      onEvent((event) => {
        if (event?.type !== 'key.created') return
        void bursar.agents.keys
          .get({ id: event.object.id })
          .then((agent) => set(agent))
          .catch(() => undefined)
      }),
    [],
  )
  return arrived
}

function Waiting({
  arrived,
  name,
  draft,
}: {
  readonly arrived: Agent | null
  readonly name: string
  readonly draft: PolicyDraft
}) {
  const [isTaken, take] = useState(false)
  if (arrived === null)
    return (
      <div class="banner" role="status">
        <Icon name="clock" />
        <span class="grow">Waiting for the agent to connect. This page notices by itself.</span>
      </div>
    )
  const takeOver = async () => {
    const answer = await withProof(() =>
      bursar.agents.keys.update({
        id: arrived.agentId,
        name: name.trim(),
        ...(arrived.policy === null ? {} : { policy: policyOf(draft) }),
      }),
    )
    agentById(answer.agentId).put(answer)
    take(true)
    void agents.reload()
  }
  return (
    <div class="stack">
      <div class="banner banner--good" role="status">
        <Icon name="check" />
        <span class="grow">
          <b>
            <Untrusted>{shortText(isTaken ? name : arrived.name)}</Untrusted>
          </b>{' '}
          is connected.{isTaken ? ' It has the name and the limits that you set here.' : ''}
        </span>
        {!isTaken && (
          <ActionButton size="sm" run={takeOver} busy="Setting">
            Use the name and limits set here
          </ActionButton>
        )}
      </div>
      <Granted arrived={arrived} draft={draft} />
    </div>
  )
}

/** What an agent really got, beside what was chosen for it. */
function Granted({ arrived, draft }: { readonly arrived: Agent; readonly draft: PolicyDraft }) {
  const agent = loadedValue(useResource(agentById(arrived.agentId))) ?? arrived
  const { see, change, move } = describeScopes(agent.scopes)
  const policy = readPolicy(agent.policy)
  const absent = describeScopes(scopesOf(draft.categories).filter((scope) => !agent.scopes.includes(scope)))
  const missing = [absent.see, absent.change, absent.move].filter((words) => words !== '').join(', ')
  const facts = [
    ['May see', see === '' ? 'Nothing' : see],
    ...(change === '' ? [] : [['May change', change] as const]),
    ['May move', move === '' ? 'Nothing' : move],
    ...(missing === '' ? [] : [['Not granted', missing] as const]),
  ] as const
  return (
    <div class="stack stack--tight">
      <h3>What it got</h3>
      <dl class="facts">
        {facts.flatMap(([name, value]) => [
          <dt key={`${name} name`}>{name}</dt>,
          <dd key={name}>{value}</dd>,
        ])}
      </dl>
      {policy !== null && <PolicyWords policy={policy} />}
    </div>
  )
}

function ApiKey({ name, draft }: { readonly name: string; readonly draft: PolicyDraft }) {
  const [made, set] = useState<{ readonly id: string; readonly secret: string } | null>(null)
  const make = async () => {
    const { id, key } = await withProof(() =>
      bursar.developer.keys.create({
        name: name.trim(),
        scopes: scopesOf(draft.categories),
        policy: policyOf(draft),
      }),
    )
    if (key === null) return
    set({ id, secret: key })
    toast('The key is made. Copy it now.')
    void agents.reload()
  }
  if (made === null)
    return (
      <div class="stack stack--tight">
        <h3>For everything that is not an MCP client</h3>
        <p class="soft small">The key spends within the limits that you have just set. You see it once.</p>
        <div>
          <ActionButton icon="key" run={make} busy="Making">
            Make an API key
          </ActionButton>
        </div>
      </div>
    )
  return (
    <div class="stack">
      <div class="stack stack--tight">
        <h3>Its key</h3>
        <Copy text={made.secret} what="the API key" />
        <p class="soft small">
          This is the only time that it is shown. Who has it can spend within the limits, so keep it as you
          keep a password.
        </p>
      </div>
      <div class="stack stack--tight">
        <h3>Try it</h3>
        <Copy
          text={`curl ${deployment.origin}/api/wallets -H 'Authorization: Bearer ${made.secret}'`}
          what="the command"
        />
      </div>
      <div>
        <Link class="btn btn--sm" href={`/agents/${made.id}`}>
          Open its page
        </Link>
      </div>
    </div>
  )
}

/** Connecting an agent: an app that takes a URL, or a program with a terminal; and what came of it. */
import { useEffect, useId, useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import type { Agent } from '../../client/operations.ts'
import { account, deployment } from '../data/account.ts'
import { bursar, withProof } from '../data/gateway.ts'
import { agents } from '../data/money.ts'
import { forgetPlannedAgent, planAgent } from '../data/planned-agent.ts'
import { plainText } from '../words/plain-text.ts'
import { deriveScopes, type PolicyDraft, toPolicy } from '../words/policy-draft.ts'
import { findReach } from '../words/reach.ts'
import { Arrived, useAgent, useArrival, useFirstCall, WaitingForAgent } from './agent-arrival.tsx'
import { ConnectCommands } from './connect-commands.tsx'
import { ConnectUrl } from './connect-url.tsx'
import { ActionButton, Copy, Segments } from './controls.tsx'
import { toast } from './messages.tsx'

type Kind = 'url' | 'terminal'

const kinds = [
  ['url', 'An app that takes a URL', 'Claude, ChatGPT and others. No terminal.'],
  ['terminal', 'A program with a terminal', 'Claude Code, Cursor, VS Code, your own.'],
] as const

type Way = 'oauth' | 'signed' | 'api_key'

const ways = [
  ['oauth', 'OAuth'],
  ['signed', 'Own key'],
  ['api_key', 'API key'],
] as const

/** @property name and draft chosen for the agent. */
export function ConnectAgent({
  name,
  draft,
  back,
}: {
  readonly name: string
  readonly draft: PolicyDraft
  readonly back: () => void
}) {
  // Apps in the cloud cannot reach a gateway without a public address.
  const [kind, chooseKind] = useState<Kind>(findReach(deployment.origin) === 'anywhere' ? 'url' : 'terminal')
  const [way, chooseWay] = useState<Way>('oauth')
  const arrived = useArrival()
  const isPlanned = kind === 'url' || way !== 'api_key'
  const accountId = account.value?.id
  useEffect(() => {
    if (accountId !== undefined && arrived === null && isPlanned) planAgent({ accountId, name, draft })
    return forgetPlannedAgent
  }, [accountId, arrived, isPlanned, name, draft])
  // It replaces the commands as what counts, but an API key that is shown only now stays in sight.
  const result = arrived !== null && <Result arrived={arrived} name={name} draft={draft} />
  return (
    <section class="panel" aria-labelledby="connect">
      <div class="panel__head">
        <h2 id="connect">How it connects</h2>
      </div>
      <div class="panel__body stack stack--loose">
        {isPlanned && result}
        <Kinds kind={kind} choose={chooseKind} />
        {kind === 'url' ? (
          <ConnectUrl />
        ) : (
          <Terminal way={way} choose={chooseWay} name={name} draft={draft} />
        )}
        {!isPlanned && result}
        {arrived === null && isPlanned && <WaitingForAgent />}
      </div>
      <div class="actionbar">
        <button class="btn btn--quiet" type="button" onClick={back}>
          Back
        </button>
        {arrived === null ? (
          <Link class="btn" href="/agents">
            Finish later
          </Link>
        ) : (
          <WayOn arrived={arrived} />
        )}
      </div>
    </section>
  )
}

function Result({
  arrived,
  name,
  draft,
}: {
  readonly arrived: Agent
  readonly name: string
  readonly draft: PolicyDraft
}) {
  return <Arrived agent={useFirstCall(arrived)} name={name} draft={draft} />
}

/** It is done when the agent has made its first call, not when it connected. */
function WayOn({ arrived }: { readonly arrived: Agent }) {
  const { agentId, firstUsedAt } = useAgent(arrived)
  return firstUsedAt === null ? (
    <Link class="btn" href={`/agents/${agentId}`}>
      Open the agent’s page
    </Link>
  ) : (
    <Link class="btn btn--primary" href={`/agents/${agentId}`}>
      Done
    </Link>
  )
}

function Kinds({ kind, choose }: { readonly kind: Kind; readonly choose: (kind: Kind) => void }) {
  const group = useId()
  return (
    <fieldset>
      <legend class="hide">What connects</legend>
      <div class="presets presets--two">
        {kinds.map(([one, title, words]) => (
          <label class="preset" key={one}>
            <input type="radio" name={group} checked={one === kind} onChange={() => choose(one)} />
            <b>{title}</b>
            {words}
          </label>
        ))}
      </div>
    </fieldset>
  )
}

function Terminal({
  way,
  choose,
  name,
  draft,
}: {
  readonly way: Way
  readonly choose: (way: Way) => void
  readonly name: string
  readonly draft: PolicyDraft
}) {
  return (
    <>
      <Segments label="Way to connect" options={ways} value={way} choose={choose} />
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
            text={`npx bursar agent register --url ${deployment.origin} --name ${quoteName(name)} --out agent.json`}
            what="the command"
          />
          <p class="soft small">
            The agent makes a key that never leaves its machine, and shows you a link to say yes. What you
            have just chosen is filled in there.
          </p>
        </div>
      )}
      {way === 'api_key' && <ApiKey name={name} draft={draft} />}
    </>
  )
}

/** A name for a POSIX shell: one word, whatever stands in it. */
function quoteName(name: string): string {
  return `'${plainText(name.trim()).replaceAll("'", `'\\''`)}'`
}

function ApiKey({ name, draft }: { readonly name: string; readonly draft: PolicyDraft }) {
  const [secret, set] = useState<string | null>(null)
  const make = async () => {
    const { key } = await withProof(() =>
      bursar.developer.keys.create({
        name: name.trim(),
        scopes: deriveScopes(draft.categories),
        policy: toPolicy(draft),
      }),
    )
    if (key === null) return
    set(key)
    toast('The key is made. Copy it now.')
    void agents.reload()
  }
  if (secret === null)
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
        <Copy text={secret} what="the API key" />
        <p class="soft small">
          This is the only time that it is shown. Who has it can spend within the limits, so keep it as you
          keep a password.
        </p>
      </div>
      <div class="stack stack--tight">
        <h3>Try it</h3>
        <Copy
          text={`curl ${deployment.origin}/api/wallets -H 'Authorization: Bearer ${secret}'`}
          what="the command"
        />
      </div>
    </div>
  )
}

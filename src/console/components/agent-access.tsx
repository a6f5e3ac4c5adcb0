/** Shows the access of an agent, and grants and takes it. */
import { useId, useState } from 'preact/hooks'
import type { Agent } from '../../client/operations.ts'
import { bursar, withProof } from '../data/gateway.ts'
import {
  capital,
  describeDenied,
  describeScope,
  describeScopeChange,
  describeScopes,
  isSpending,
  scopeGroups,
} from '../words/policy.ts'
import { readPolicy } from '../words/policy-draft.ts'
import { ActionButton, Form } from './controls.tsx'
import { Icon } from './icon.tsx'
import { toast } from './messages.tsx'
import { Panel } from './panel.tsx'

/** @property show takes over what the gateway answered. */
export function AgentAccess({
  agent,
  show,
}: {
  readonly agent: Agent
  readonly show: (agent: Agent) => Promise<void>
}) {
  const [isOpen, open] = useState(false)
  const mayChange = agent.status !== 'revoked'
  return (
    <Panel
      title="Its access"
      more={
        mayChange &&
        !isOpen && (
          <button
            class="linkbtn small"
            type="button"
            onClick={() => open(true)}
            aria-label="Change its access"
          >
            Change
          </button>
        )
      }
    >
      <div class="panel__body stack">
        {isOpen && mayChange ? (
          <AccessForm agent={agent} show={show} close={() => open(false)} />
        ) : (
          <AccessFacts scopes={agent.scopes} />
        )}
      </div>
    </Panel>
  )
}

function AccessFacts({ scopes }: { readonly scopes: readonly string[] }) {
  const { see, change, move } = describeScopes(scopes)
  const facts = [
    ['May see', see],
    ['May change', change],
    ['May move', move],
  ] as const
  return (
    <dl class="facts">
      {facts.flatMap(([name, value]) => [
        <dt key={`${name} name`}>{name}</dt>,
        <dd key={name}>{value === '' ? 'Nothing' : value}</dd>,
      ])}
    </dl>
  )
}

type Scope = NonNullable<Parameters<typeof bursar.agents.keys.update>[0]['scopes']>[number]

function AccessForm({
  agent,
  show,
  close,
}: {
  readonly agent: Agent
  readonly show: (agent: Agent) => Promise<void>
  readonly close: () => void
}) {
  // Ticks that differ from what the agent has. Changes made meanwhile on another page stay.
  const [wishes, wish] = useState<Readonly<Record<string, boolean>>>({})
  const id = useId()
  const has = (scope: string) => agent.scopes.includes(scope)
  const wants = (scope: string) => wishes[scope] ?? has(scope)
  const known = scopeGroups.flatMap(({ scopes }) => scopes)
  const granted = known.filter((scope) => wants(scope) && !has(scope))
  const taken = known.filter((scope) => !wants(scope) && has(scope))
  const wanted = [...agent.scopes.filter((scope) => !taken.includes(scope)), ...granted]
  const policy = readPolicy(agent.policy)
  const lacksPolicy = policy === null && wanted.some(isSpending)
  const denied = policy === null ? '' : describeDenied(granted, policy.categories.allow)
  const words = describeScopeChange(granted, taken)
  const problem = lacksPolicy
    ? 'It has no limits to spend within. Set them with “Change policy” first.'
    : null
  const save = async () => {
    // The boxes name the gateway's own scopes, and it checks them again.
    const change = { id: agent.agentId, scopes: wanted as Scope[] }
    const answer = await withProof(() => bursar.agents.keys.update(change))
    await show(answer)
    close()
    toast(`${words}: done. It holds from the next call.`)
  }
  return (
    <Form>
      {scopeGroups.map(({ title, scopes }) => (
        <fieldset key={title} aria-describedby={problem === null ? undefined : `${id}-problem`}>
          <legend class="label">{title}</legend>
          {scopes.map((scope) => (
            <label class="check" key={scope}>
              <input
                type="checkbox"
                checked={wants(scope)}
                onChange={(event) => wish({ ...wishes, [scope]: event.currentTarget.checked })}
              />
              {capital(describeScope(scope))}
            </label>
          ))}
        </fieldset>
      ))}
      {problem !== null && (
        <p class="field__error wrap" id={`${id}-problem`} role="alert">
          <Icon name="warning" small />
          {problem}
        </p>
      )}
      <p class="small soft" role="status">
        {denied !== '' &&
          `Its policy does not let it ${denied} yet: change that too, or each try is denied. `}
        {granted.length > 0
          ? 'Granting may need your second factor.'
          : 'Taking holds from the next call. Granting may need your second factor.'}
      </p>
      <div class="row row--wrap says-all">
        <ActionButton kind="primary" run={save} busy="Saving" disabled={words === '' || lacksPolicy}>
          {words === '' ? 'Nothing changed' : words}
        </ActionButton>
        <button class="btn btn--quiet" type="button" onClick={close}>
          Cancel
        </button>
      </div>
    </Form>
  )
}

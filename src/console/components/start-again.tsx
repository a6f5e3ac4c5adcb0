/** Starts agents that were stopped: which, is chosen from a list. */
import { useState } from 'preact/hooks'
import type { Agent } from '../../client/operations.ts'
import { bursar, describeError, GivenUp, WordedError, withProof } from '../data/gateway.ts'
import { agents } from '../data/money.ts'
import { loadedValue, useResource } from '../data/resource.ts'
import { formatUsd } from '../words/money.ts'
import { count } from '../words/names.ts'
import { formatWhen } from '../words/time.ts'
import { ActionButton, Dialog, DialogButtons } from './controls.tsx'
import { toast } from './messages.tsx'
import { Untrusted } from './quote.tsx'

/** Agents that are stopped themselves, not only with one above them; the newest stop first. */
export function stoppedAgents(keys: readonly Agent[]): readonly Agent[] {
  const at = ({ pausedAt }: Agent) => pausedAt ?? ''
  return keys
    .filter(({ status, path, pausedAt }) => status === 'paused' && (path.length === 0 || pausedAt !== null))
    .sort((one, other) => at(other).localeCompare(at(one)))
}

/** Asks which agents start, with those ticked that were stopped last. */
export function StartAgain({ close }: { readonly close: () => void }) {
  const stopped = stoppedAgents(loadedValue(useResource(agents))?.keys ?? [])
  const last = stopped[0]?.pausedAt
  const [chosen, choose] = useState<Readonly<Record<string, boolean>>>({})
  const isChosen = ({ agentId, pausedAt }: Agent) => chosen[agentId] ?? pausedAt === last
  const starting = stopped.filter(isChosen)
  const start = async () => {
    const failed: string[] = []
    let reason = ''
    for (const { agentId, name } of starting)
      try {
        await withProof(() => bursar.agents.keys.update({ id: agentId, status: 'active' }))
      } catch (error) {
        if (error instanceof GivenUp) throw error
        failed.push(name)
        reason = describeError(error)
      }
    await agents.reload()
    const started = starting.length - failed.length
    if (started > 0) toast(`${count(started, 'agent is', 'agents are')} started.`)
    if (failed.length > 0) throw new WordedError(`${failed.join(', ')} did not start. ${reason}`)
    close()
  }
  const words =
    starting.length === stopped.length && starting.length > 1
      ? `all ${starting.length}`
      : count(starting.length, 'agent', 'agents')
  return (
    <Dialog title="Start agents again" close={close}>
      <p>They may spend again from this second on, each under its own rules. What they used stays used.</p>
      <ul class="rows">
        {stopped.map((agent) => (
          <li key={agent.agentId}>
            <label class="item">
              <input
                type="checkbox"
                checked={isChosen(agent)}
                onChange={(event) => choose({ ...chosen, [agent.agentId]: event.currentTarget.checked })}
              />
              <span class="item__main">
                <span class="item__name">
                  <span class="trim">
                    <Untrusted>{agent.name}</Untrusted>
                  </span>
                </span>
                <span class="item__sub">
                  {agent.pausedAt === null ? 'Stopped' : `Stopped ${formatWhen(agent.pausedAt)}`}
                </span>
              </span>
              <span class="item__end small num">{describeLeft(agent)}</span>
            </label>
          </li>
        ))}
      </ul>
      <DialogButtons close={close}>
        <ActionButton kind="primary" run={start} busy="Starting" disabled={starting.length === 0}>
          Start {words}
        </ActionButton>
      </DialogButtons>
    </Dialog>
  )
}

/** Shows the amount that an agent could spend today once it runs. */
function describeLeft({ usage, policy }: Agent): string {
  if (policy === null) return 'Spends nothing'
  return usage.remaining === null ? 'No daily budget' : `${formatUsd(usage.remaining)} left today`
}

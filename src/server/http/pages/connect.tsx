/** Page where an owner registers an agent that shows a code. Its script loads the request and submits the decision. */
import type { Scope } from '../../../people/identity/keys/grantable.ts'
import { DecisionForms } from './decision-forms.tsx'
import { GrantFields } from './grant-fields.tsx'
import { Shell } from './shell.tsx'
import { StepUpForms } from './step-up.tsx'

export interface ConnectProps {
  readonly person: string
  readonly accountId: string
  readonly scopes: readonly Scope[]
  readonly isSandbox: boolean
}

export function ConnectPage({ person, accountId, scopes, isSandbox }: ConnectProps) {
  return (
    <Shell title="Connect an agent" script="connect" isWide={true} wayOut={true} person={person}>
      <h1 tabindex={-1}>Connect this agent?</h1>
      <section id="request" hidden>
        <p>
          A program asks to act for <strong>{person}</strong>
          {isSandbox ? ' in this sandbox, where no money is real.' : '.'} If you approve, it can do what you
          choose below, by itself, until you pause or revoke it.
        </p>
        <p id="user-code" class="code" />
        <dl>
          <dt>Name, as the program gave it</dt>
          <dd id="agent" />
          <dt>Thumbprint of its key</dt>
          <dd id="thumbprint" class="hint" />
          <dt>Your account</dt>
          <dd class="hint">{accountId}</dd>
          <dt>Expires</dt>
          <dd id="until" />
        </dl>
        <p class="warn">
          <strong>
            Approve only if you have just started “bursar agent register” yourself, and your terminal shows
            exactly this code.
          </strong>{' '}
          If another person sent you this link or this code, reject it. Approving would give their program
          access to your account.
        </p>
        <DecisionForms id="approve" accountId={accountId} label="Approve">
          <GrantFields scopes={scopes} />
        </DecisionForms>
      </section>
      <StepUpForms />
    </Shell>
  )
}

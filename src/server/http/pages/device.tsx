/** Page where a person signs in a program that shows a code. Its script loads the request and submits the decision. */
import { DecisionForms } from './decision-forms.tsx'
import { Shell } from './shell.tsx'
import { StepUpForms } from './step-up.tsx'

export interface DeviceProps {
  readonly person: string
  readonly accountId: string
  readonly isSandbox: boolean
}

export function DevicePage({ person, accountId, isSandbox }: DeviceProps) {
  return (
    <Shell title="Sign in a program" script="device" wayOut={true} person={person}>
      <h1 tabindex={-1}>Sign in another device?</h1>
      <section id="request" hidden>
        <p>
          A program asks to be signed in as <strong>{person}</strong>
          {isSandbox ? ' in this sandbox, where no money is real.' : '.'} If you allow it, it can do what you
          can do here, for up to 12 hours or until you end its session.
        </p>
        <p id="user-code" class="code" />
        <dl>
          <dt>Name, as the program gave it</dt>
          <dd id="program" />
          <dt>Asks from the address</dt>
          <dd id="address" />
          <dt>Asked</dt>
          <dd id="since" />
          <dt>Your account</dt>
          <dd class="hint">{accountId}</dd>
          <dt>Expires</dt>
          <dd id="until" />
        </dl>
        <p class="warn">
          <strong>
            Allow only if you have just started “bursar login” yourself, and your terminal shows exactly this
            code.
          </strong>{' '}
          If another person sent you this link or this code, reject it: allowing would sign their device in to
          your account.
        </p>
        <DecisionForms id="allow" accountId={accountId} label="Allow" />
      </section>
      <StepUpForms />
    </Shell>
  )
}

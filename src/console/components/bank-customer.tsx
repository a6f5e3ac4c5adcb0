/** The owner as a customer of the bank: its own pages for identity and terms, before accounts can be opened. */

import { useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import { bursar, isProblem } from '../data/gateway.ts'
import { bankCustomer } from '../data/money.ts'
import { useResource } from '../data/resource.ts'
import { ActionButton } from './controls.tsx'
import { Chip } from './marks.tsx'
import { Banner, toast } from './messages.tsx'
import { OutsideLink } from './outside-link.tsx'
import { Panel } from './panel.tsx'

/** Shown while something is to be done; gateways whose bank asks for nothing never show it. */
export function BankCustomerPanel() {
  const state = useResource(bankCustomer)
  const [needsIdentity, setNeedsIdentity] = useState(false)
  if (state.status !== 'ready' || state.value.status === 'approved') return null
  const { status, kycUrl, termsUrl } = state.value
  const start = async () => {
    try {
      bankCustomer.put(await bursar.banking.customer.start())
    } catch (error) {
      if (!isProblem(error, 'kyc_required')) throw error
      setNeedsIdentity(true)
    }
  }
  const check = async () => {
    await bankCustomer.reload()
    toast('Asked the bank again.')
  }
  return (
    <Panel title="The bank wants to know you">
      <div class="panel__body stack">
        {status === 'none' && (
          <>
            <p class="soft">
              Accounts are opened in your name, so the bank verifies you itself: two pages of its own, once.
            </p>
            {needsIdentity && (
              <Banner kind="warn" icon="warning">
                It starts from your verified name and e-mail address.{' '}
                <Link href="/compliance">Verify your identity first</Link>, with an e-mail address.
              </Banner>
            )}
            <div class="row">
              <ActionButton kind="primary" run={start} busy="Asking the bank">
                Start
              </ActionButton>
            </div>
          </>
        )}
        {status === 'open' && (
          <>
            <Step
              name="Prove your identity"
              words="An identity document and a look into the camera."
              url={kycUrl}
            />
            <Step name="Accept the bank’s terms" words="Read them on the bank’s own page." url={termsUrl} />
            <div class="row row--wrap">
              <ActionButton run={check} busy="Asking">
                Check again
              </ActionButton>
              <span class="small faint">
                {kycUrl === null && termsUrl === null
                  ? 'The bank is reviewing what you gave it.'
                  : 'The pages open beside this one. Come back when you are done.'}
              </span>
            </div>
          </>
        )}
        {status === 'paused' && (
          <Banner kind="warn" icon="clock">
            The bank has paused its review. Ask the operator what it needs.
          </Banner>
        )}
        {status === 'rejected' && (
          <Banner kind="bad" icon="warning">
            The bank does not take you as a customer. Ask the operator why.
          </Banner>
        )}
      </div>
    </Panel>
  )
}

/** @param url null: done. */
function Step({
  name,
  words,
  url,
}: {
  readonly name: string
  readonly words: string
  readonly url: string | null
}) {
  return (
    <div class="row row--wide row--wrap">
      <div class="grow">
        <p class="strong">{name}</p>
        <p class="small soft">{words}</p>
      </div>
      {url === null ? (
        <Chip kind="good" icon="check">
          Done
        </Chip>
      ) : (
        <OutsideLink url={url}>{name}</OutsideLink>
      )}
    </div>
  )
}

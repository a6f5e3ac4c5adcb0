/** The owner's account at the broker: what is missing, the broker's own questions, and its state. */
import { useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import type { InvestingAccountOpenRequest } from '../../client/operations.ts'
import { bursar, withProof } from '../data/gateway.ts'
import { brokerageAccount } from '../data/invest.ts'
import { useResource } from '../data/resource.ts'
import { requirementInWords } from '../words/verification.ts'
import { ActionButton, Dialog, DialogButtons, Field } from './controls.tsx'
import { Banner, toast } from './messages.tsx'
import { Panel } from './panel.tsx'

/** Shown while orders are not possible yet; gateways whose broker keeps no accounts of persons never show it. */
export function BrokerageAccountPanel() {
  const state = useResource(brokerageAccount)
  const [isOpening, setOpening] = useState(false)
  if (state.status !== 'ready' || state.value.status === 'active') return null
  const { status, requirements } = state.value
  return (
    <Panel title="Your account at the broker">
      <div class="panel__body stack">
        {status === 'none' && (
          <>
            <p class="soft">
              What you buy is yours, in an account of your own at the broker. It is opened once, from your
              verified identity.
            </p>
            {requirements.length > 0 ? (
              <Banner kind="warn" icon="warning">
                Still missing: {requirements.map(requirementInWords).join(', ')}.{' '}
                <Link href="/compliance">Add it to your verified identity</Link>.
              </Banner>
            ) : (
              <div class="row">
                <button class="btn btn--primary" type="button" onClick={() => setOpening(true)}>
                  Open it
                </button>
              </div>
            )}
          </>
        )}
        {(status === 'opening' || status === 'pending') && (
          <Banner kind="warn" icon="clock">
            The broker is reviewing your application. Orders are possible as soon as it is approved.
          </Banner>
        )}
        {status === 'action_required' && (
          <Banner kind="warn" icon="warning">
            The broker needs something more from you, and writes to you about it.
          </Banner>
        )}
        {(status === 'rejected' || status === 'closed') && (
          <Banner kind="bad" icon="warning">
            {status === 'rejected'
              ? 'The broker does not open an account for you. Ask the operator why.'
              : 'Your account at the broker is closed. Ask the operator about it.'}
          </Banner>
        )}
      </div>
      {isOpening && <OpenDialog close={() => setOpening(false)} />}
    </Panel>
  )
}

type Source = InvestingAccountOpenRequest['fundingSources'][number]
type Disclosure = keyof InvestingAccountOpenRequest['disclosures']

const sources: readonly (readonly [Source, string])[] = [
  ['employment_income', 'Wages'],
  ['business_income', 'A business'],
  ['savings', 'Savings'],
  ['investments', 'Investments'],
  ['inheritance', 'An inheritance'],
  ['family', 'Family'],
]

const questions: readonly (readonly [Disclosure, string])[] = [
  ['isControlPerson', 'I direct a listed company, or own a tenth of one.'],
  ['isAffiliatedExchangeOrFinra', 'I work for a broker, an exchange or FINRA.'],
  ['isPoliticallyExposed', 'I hold a high public office, or did.'],
  ['immediateFamilyExposed', 'A close relative of mine holds one, or did.'],
]

/** Types of tax ids that the broker names; others are unspecified. */
const taxIds = [
  ['USA_SSN', 'United States: social security number'],
  ['GBR_UTR', 'United Kingdom: UTR'],
  ['DEU_TAX_ID', 'Germany: Steuer-Identifikationsnummer'],
  ['FRA_SPI', 'France: SPI'],
  ['JPN_TAX_ID', 'Japan: My Number'],
  ['NOT_SPECIFIED', 'Another country'],
] as const

function OpenDialog({ close }: { readonly close: () => void }) {
  const [taxIdType, setType] = useState<string>('USA_SSN')
  const [taxId, setTaxId] = useState('')
  const [chosen, choose] = useState<ReadonlySet<Source>>(new Set())
  const [said, say] = useState<ReadonlySet<Disclosure>>(new Set())
  const [accepts, setAccepts] = useState(false)
  const open = async () => {
    const request: InvestingAccountOpenRequest = {
      taxId: taxId.trim(),
      taxIdType,
      fundingSources: [...chosen],
      disclosures: {
        isControlPerson: said.has('isControlPerson'),
        isAffiliatedExchangeOrFinra: said.has('isAffiliatedExchangeOrFinra'),
        isPoliticallyExposed: said.has('isPoliticallyExposed'),
        immediateFamilyExposed: said.has('immediateFamilyExposed'),
      },
      acceptsAgreements: true,
    }
    brokerageAccount.put(await withProof(() => bursar.investing.account.open(request)))
    close()
    toast('The broker has your application.')
  }
  return (
    <Dialog title="Open your account at the broker" close={close}>
      <p>The broker has to ask these questions. Your answers go to it, encrypted, and are kept by it.</p>
      <Field label="Tax id of">
        {(props) => (
          <select
            class="input"
            value={taxIdType}
            onChange={(event) => setType(event.currentTarget.value)}
            {...props}
          >
            {taxIds.map(([code, words]) => (
              <option key={code} value={code}>
                {words}
              </option>
            ))}
          </select>
        )}
      </Field>
      <Field label="Tax id" of="taxId">
        {(props) => (
          <input
            class="input"
            maxLength={40}
            autoComplete="off"
            value={taxId}
            onInput={(event) => setTaxId(event.currentTarget.value)}
            {...props}
          />
        )}
      </Field>
      <Ticks title="My money comes from" options={sources} chosen={chosen} choose={choose} />
      <Ticks title="Tick what is true" options={questions} chosen={said} choose={say} />
      <label class="check small">
        <input
          type="checkbox"
          checked={accepts}
          onChange={(event) => setAccepts(event.currentTarget.checked)}
        />
        I have read and accept the broker’s customer, account and margin agreements.
      </label>
      <DialogButtons close={close}>
        <ActionButton
          kind="primary"
          run={open}
          busy="Sending"
          disabled={taxId.trim().length < 3 || chosen.size === 0 || !accepts}
        >
          Open it
        </ActionButton>
      </DialogButtons>
    </Dialog>
  )
}

function Ticks<Value extends string>({
  title,
  options,
  chosen,
  choose,
}: {
  readonly title: string
  readonly options: readonly (readonly [Value, string])[]
  readonly chosen: ReadonlySet<Value>
  readonly choose: (next: ReadonlySet<Value>) => void
}) {
  return (
    <fieldset class="ticks">
      <legend class="small strong">{title}</legend>
      {options.map(([value, words]) => (
        <label class="check small" key={value}>
          <input
            type="checkbox"
            checked={chosen.has(value)}
            onChange={(event) => {
              const next = new Set(chosen)
              if (event.currentTarget.checked) next.add(value)
              else next.delete(value)
              choose(next)
            }}
          />
          {words}
        </label>
      ))}
    </fieldset>
  )
}

/** Identity verification, and the personal data that the gateway keeps. */
import { useState } from 'preact/hooks'
import type { Kyc } from '../../client/operations.ts'
import { ActionButton, Dialog, DialogButtons, Field, Form, Segments } from '../components/controls.tsx'
import { Icon, type IconName } from '../components/icon.tsx'
import { Chip, type ChipKind } from '../components/marks.tsx'
import { Banner, Failed, SkeletonRows, toast } from '../components/messages.tsx'
import { OutsideLink } from '../components/outside-link.tsx'
import { Columns, PageHead, Panel } from '../components/panel.tsx'
import { account, deployment, session } from '../data/account.ts'
import { verifications } from '../data/compliance.ts'
import { bursar, withProof } from '../data/gateway.ts'
import { useResource } from '../data/resource.ts'
import { formatWhen } from '../words/time.ts'
import {
  addressDetails,
  contactDetails,
  identityDetails,
  labelInWords,
  lastMember,
  outcomes,
  requirementInWords,
  toApplicant,
} from '../words/verification.ts'

type Level = Kyc['level']

const levelWords: Readonly<Record<string, string>> = {
  none: 'Not verified',
  basic: 'Basic',
  full: 'Full',
}

export function CompliancePage() {
  return (
    <>
      <PageHead title="Compliance">Who you are, what it allows, and what is kept about you.</PageHead>
      <Columns
        main={<Verification />}
        side={
          <>
            <TravelRule />
            <PersonalData />
          </>
        }
      />
    </>
  )
}

function Verification() {
  const current = account.value?.kycLevel ?? 'none'
  const [chosen, choose] = useState<Level | null>(null)
  const level = chosen ?? (current === 'none' ? 'basic' : 'full')
  const source = verifications[level]
  const state = useResource(source)
  const shown = state.status === 'ready' ? state.value : undefined
  return (
    <Panel
      title="Identity verification"
      more={
        <Segments
          label="Level"
          options={[
            ['basic', 'Basic'],
            ['full', 'Full'],
          ]}
          value={level}
          choose={choose}
        />
      }
      foot="Your data is stored encrypted, is shown to the reviewer alone, and can be erased."
    >
      <div class="panel__body stack">
        <div class="stat">
          <span class="stat__name">Your level</span>
          <span class="figure">{levelWords[current] ?? current}</span>
        </div>
        <p class="soft small">
          {level === 'basic'
            ? 'A level raises the most that one payment may be worth.'
            : 'The full level lifts the limit of a payment, and needs an identity document.'}
        </p>
      </div>
      {state.status === 'loading' && <SkeletonRows rows={3} />}
      {state.status === 'failed' && (
        <Failed subject="Your application" error={state.error} retry={source.reload} />
      )}
      {shown !== undefined && <Application key={shown.id} application={shown} level={level} />}
    </Panel>
  )
}

const marks: Readonly<Record<Kyc['status'], { readonly kind: ChipKind; readonly icon: IconName }>> = {
  init: { kind: 'plain', icon: 'edit' },
  pending: { kind: 'warn', icon: 'clock' },
  approved: { kind: 'good', icon: 'check' },
  retry: { kind: 'warn', icon: 'retry' },
  rejected: { kind: 'bad', icon: 'close' },
}

function Application({ application, level }: { readonly application: Kyc; readonly level: Level }) {
  const { status, requirements, labels, reviewedAt } = application
  const { title, words } = outcomes[status]
  const { kind, icon } = marks[status]
  return (
    <div class="panel__body stack outcome">
      <div class="row row--wrap">
        <Chip kind={kind} icon={icon}>
          {title}
        </Chip>
        <span class="small soft grow">
          {words}
          {reviewedAt !== null && ` Decided ${formatWhen(reviewedAt)}.`}
        </span>
      </div>
      {labels.length > 0 && (
        <ul class="rules small">
          {labels.map((label) => (
            <li key={label}>{labelInWords(label)}</li>
          ))}
        </ul>
      )}
      {status === 'init' && requirements.length > 0 && (
        <p class="small">
          <span class="strong">Missing: </span>
          {requirements.map(requirementInWords).join(', ')}
        </p>
      )}
      {(status === 'init' || status === 'retry') && (
        <Form key={requirements.join()}>
          <ApplicationForm requirements={requirements} level={level} />
        </Form>
      )}
      {status === 'pending' && <ReviewerPage />}
      {status === 'approved' && (
        <Form>
          <ContactForm level={level} />
        </Form>
      )}
    </div>
  )
}

/** Asks for what is missing; for everything once the reviewer wants the data again. */
function ApplicationForm({
  requirements,
  level,
}: {
  readonly requirements: readonly string[]
  readonly level: Level
}) {
  const missing = new Set(requirements.map(lastMember))
  const asksAll = missing.size === 0
  const needsDocument = missing.has('documents')
  const [values, setValues] = useState<Readonly<Record<string, string>>>({})
  const set = (name: string) => (event: { readonly currentTarget: { readonly value: string } }) => {
    const { value } = event.currentTarget
    setValues((before) => ({ ...before, [name]: value }))
  }
  const readValue = (name: string) => (values[name] ?? '').trim()
  const send = async () => {
    const documents =
      readValue('reference') === ''
        ? []
        : [
            {
              type: readValue('type') === '' ? 'passport' : readValue('type'),
              country: readValue('documentCountry').toUpperCase(),
              reference: readValue('reference'),
            },
          ]
    const answer = await withProof(() =>
      bursar.compliance.kyc({ level, applicant: toApplicant(values), documents }),
    )
    verifications[level].put(answer)
    await session.reload()
    toast(outcomes[answer.status].title === 'Verified' ? 'You are verified.' : outcomes[answer.status].title)
  }
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault()
      }}
    >
      <div class="formgrid">
        <DetailFields
          details={identityDetails.filter(({ member }) => asksAll || missing.has(member))}
          values={values}
          set={set}
        />
        {(asksAll || missing.has('address')) && (
          <DetailFields details={[...addressDetails, ...contactDetails]} values={values} set={set} />
        )}
        {needsDocument && (
          <>
            <Field label="Document">
              {(props) => (
                <select class="input" value={values.type ?? 'passport'} onChange={set('type')} {...props}>
                  <option value="passport">Passport</option>
                  <option value="id_card">Identity card</option>
                  <option value="driving_license">Driving licence</option>
                </select>
              )}
            </Field>
            <Field label="Issued by" of="documents.0.country" hint="Two letters, such as DE or JP.">
              {(props) => (
                <input
                  class="input"
                  maxLength={2}
                  value={values.documentCountry ?? ''}
                  onInput={set('documentCountry')}
                  {...props}
                />
              )}
            </Field>
            <Field label="Reference" of="documents.0.reference" hint="By which the reviewer finds it.">
              {(props) => (
                <input
                  class="input"
                  maxLength={200}
                  value={values.reference ?? ''}
                  onInput={set('reference')}
                  {...props}
                />
              )}
            </Field>
          </>
        )}
      </div>
      {deployment.isSandbox && (
        <p class="small faint">
          Sandbox: use invented data. The family name Pending is approved after ten seconds, Retry and
          Rejected are refused, and every other name is approved.
        </p>
      )}
      <div class="row">
        <ActionButton kind="primary" run={send} busy="Sending">
          Send for review
        </ActionButton>
      </div>
    </form>
  )
}

function DetailFields({
  details,
  values,
  set,
}: {
  readonly details: typeof identityDetails
  readonly values: Readonly<Record<string, string>>
  readonly set: (name: string) => (event: { readonly currentTarget: { readonly value: string } }) => void
}) {
  return (
    <>
      {details.map(({ member, words, hint, autocomplete, inputMode, most }) => (
        <Field
          key={member}
          label={words}
          of={`applicant.${member}`}
          {...(hint === undefined ? {} : { hint })}
        >
          {(props) =>
            member === 'dateOfBirth' ? (
              <input
                class="input"
                type="date"
                autoComplete={autocomplete}
                value={values[member] ?? ''}
                onInput={set(member)}
                {...props}
              />
            ) : (
              <input
                class="input"
                autoComplete={autocomplete}
                maxLength={most}
                value={values[member] ?? ''}
                onInput={set(member)}
                {...(inputMode === undefined ? {} : { inputMode })}
                {...props}
              />
            )
          }
        </Field>
      ))}
    </>
  )
}

/** E-mail, phone and address of a verified person, for a bank or broker that asks for more than the reviewer did. */
function ContactForm({ level }: { readonly level: Level }) {
  const [isOpen, setOpen] = useState(false)
  const [values, setValues] = useState<Readonly<Record<string, string>>>({})
  const applicant = toApplicant(values)
  const send = async () => {
    verifications[level].put(
      await withProof(() => bursar.compliance.kyc({ level, applicant, documents: [] })),
    )
    setOpen(false)
    setValues({})
    toast('Your details are kept. Those that were verified stay as they are.')
  }
  if (!isOpen)
    return (
      <div class="row">
        <button class="btn btn--sm" type="button" onClick={() => setOpen(true)}>
          Add e-mail, phone or address
        </button>
      </div>
    )
  return (
    <form class="stack" onSubmit={(event) => event.preventDefault()}>
      <p class="small soft">The bank and the broker ask for these. Details that you gave before stay.</p>
      <div class="formgrid">
        <DetailFields
          details={[...contactDetails, ...addressDetails]}
          values={values}
          set={(name) => (event) => {
            const { value } = event.currentTarget
            setValues((before) => ({ ...before, [name]: value }))
          }}
        />
      </div>
      <div class="row">
        <ActionButton kind="primary" run={send} busy="Keeping" disabled={Object.keys(applicant).length === 0}>
          Keep them
        </ActionButton>
        <button class="btn" type="button" onClick={() => setOpen(false)}>
          Cancel
        </button>
      </div>
    </form>
  )
}

/** The reviewer's own page for documents and a selfie, where the review waits for them. */
function ReviewerPage() {
  const [page, setPage] = useState<{ readonly url: string; readonly expiresAt: string | null } | null>(null)
  const ask = async () => {
    const { url, expiresAt } = await bursar.compliance.verificationPage()
    if (url === null) toast('The reviewer needs nothing more from you.')
    else setPage({ url, expiresAt })
  }
  if (page === null)
    return (
      <div class="row">
        <ActionButton run={ask} busy="Asking the reviewer">
          Show my documents
        </ActionButton>
      </div>
    )
  return (
    <div class="stack stack--tight">
      <div class="row">
        <OutsideLink url={page.url}>Go to the reviewer’s page</OutsideLink>
      </div>
      <p class="small faint">
        The link is yours alone{page.expiresAt === null ? '.' : ` and ends ${formatWhen(page.expiresAt)}.`}
      </p>
    </div>
  )
}

function TravelRule() {
  return (
    <Panel title="Travel Rule">
      <div class="panel__body stack small soft">
        <p>
          Larger transfers name their sender and payee to the other institution, as the law of most countries
          requires. Bursar asks for the payee when a transfer needs it.
        </p>
        <a href="/docs">How programs submit it</a>
      </div>
    </Panel>
  )
}

function PersonalData() {
  const [isErasing, erase] = useState(false)
  return (
    <Panel title="Personal data">
      <div class="panel__body stack">
        <p class="small soft">
          Kept: what you submitted for verification and the Travel Rule, and what purchases sent and received.
          Verdicts and payments stay, because the law asks for them.
        </p>
        <div class="row">
          <button class="btn btn--stopline" type="button" onClick={() => erase(true)}>
            <Icon name="close" small />
            Erase my personal data
          </button>
        </div>
      </div>
      {isErasing && <EraseDialog close={() => erase(false)} />}
    </Panel>
  )
}

const CONFIRMATION = 'erase'

function EraseDialog({ close }: { readonly close: () => void }) {
  const [typed, setTyped] = useState('')
  const run = async () => {
    await withProof(() => bursar.compliance.personalData.erase())
    // Reading a level that was not opened would begin an application for it.
    for (const one of Object.values(verifications))
      if (one.state.peek().status === 'ready') await one.reload()
    close()
    toast('Your personal data is erased.')
  }
  return (
    <Dialog title="Erase your personal data?" close={close}>
      <Banner kind="warn" icon="warning">
        This cannot be undone. A verification under way ends without a decision.
      </Banner>
      <Field label={`Type “${CONFIRMATION}” to go on`}>
        {(props) => (
          <input
            class="input"
            autoComplete="off"
            autofocus
            value={typed}
            onInput={(event) => setTyped(event.currentTarget.value)}
            {...props}
          />
        )}
      </Field>
      <DialogButtons close={close} leave="Keep it">
        <ActionButton
          kind="stop"
          run={run}
          busy="Erasing"
          disabled={typed.trim().toLowerCase() !== CONFIRMATION}
        >
          Erase for good
        </ActionButton>
      </DialogButtons>
    </Dialog>
  )
}
